-- Deletes those of KEYS that hold ARGV[1], also where it was revoked.
--
-- Answers 1 when all of them did, -1 when one holds something else, 0 when one is missing and none
-- holds anything else. Reads first and writes last: a script is not undone by its own error.
local answer, own = 1, {}
for n = 1, #KEYS do
  local held = redis.pcall('GET', KEYS[n])
  if held == ARGV[1] or held == ARGV[1] .. '!' then
    own[#own + 1] = KEYS[n]
  elseif not held then
    answer = math.min(answer, 0)
  elseif type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
    return held
  else
    answer = -1
  end
end
if #own > 0 then
  redis.call('DEL', unpack(own))
end
return answer
