-- Sets KEYS to ARGV[1] for ARGV[2] milliseconds if none of them holds anything else. Behind
-- standing.lua the first two of KEYS are the node's own.
--
-- Answers 1 when it did, -n when the n-th of the lock's keys holds something else. A node that has
-- lost some of the keys is given those, and those that hold the value already live for no less than
-- they did before. Reads first and writes last: a script is not undone by its own error. A user
-- that may not ask for the life left sets them blindly.
local before, left = 0, {}
if #ARGV > 2 then
  before = 2
end
for n = before + 1, #KEYS do
  local held = redis.pcall('GET', KEYS[n])
  if held == ARGV[1] then
    left[n] = redis.pcall('PTTL', KEYS[n])
  elseif held then
    if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
      return held
    end
    return before - n
  end
end
for n = before + 1, #KEYS do
  if type(left[n]) ~= 'number' or left[n] < tonumber(ARGV[2]) then
    redis.call('SET', KEYS[n], ARGV[1], 'PX', ARGV[2])
  end
end
return 1
