-- Gives the last of KEYS the value ARGV[1] if its value is ARGV[2]; it then lives for ARGV[3]
-- milliseconds, or for longer if it did. Runs behind standing.lua where servers may forget.
--
-- Answers {1, ms} when it did, with what the key had left to live before; 0 when there is no such
-- key, -1 when it holds something else, or never expires, -2 when it holds ARGV[2], revoked. Never
-- makes a key, never shortens a life. Reads and checks first and writes last: a script is not
-- undone by its own error.
local key = KEYS[#KEYS]
if not string.match(ARGV[3], '^%d+$') then
  return redis.error_reply('ERR a TTL must be a whole number')
end
local held, left = redis.pcall('GET', key), redis.pcall('PTTL', key)
if not held then
  return 0
end
if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
  return held
end
if held ~= ARGV[2] then
  return held == ARGV[2] .. '!' and -2 or -1
end
if type(left) == 'table' then
  return left
end
if left == -1 then
  return -1
end
local life = math.max(left, tonumber(ARGV[3]))
redis.call('SET', key, ARGV[1], 'PX', string.format('%.0f', life))
return {1, left}
