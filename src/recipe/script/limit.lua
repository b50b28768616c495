-- Lets so much pass, or says when: the generic cell rate algorithm, by this server's time.
-- KEYS[1] is the moment, in microseconds, at which all that has passed would have passed evenly.
-- ARGV: how much time what is asked for takes, and how far that moment may lie ahead.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local even = tonumber(redis.call('GET', KEYS[1]) or now)
if not even then
  return redis.error_reply('ERR the key ' .. KEYS[1] .. ' holds something else than a limit')
end
even = math.max(even, now) + ARGV[1]
local ahead = even - now
if ahead > tonumber(ARGV[2]) then
  return {0, math.ceil(ahead - ARGV[2])}
end
redis.call('SET', KEYS[1], string.format('%.0f', even), 'PX', math.ceil(ahead / 1000))
return {1, math.floor(ARGV[2] - ahead)}
