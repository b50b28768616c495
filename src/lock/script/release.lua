-- Deletes KEYS[1] if its value is ARGV[1].
--
-- Answers 1 when it did, 0 when there is no such key, -1 when it holds something else. Reads first
-- and writes last: a script is not undone by its own error.
local held = redis.pcall('GET', KEYS[1])
if held == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
if not held then
  return 0
end
if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
  return held
end
return -1
