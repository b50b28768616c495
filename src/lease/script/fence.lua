-- Lets a lock's fence rise to ARGV[2], if the lock is held with the value ARGV[1] and the fence is
-- below that. With a TTL in ARGV[5] it also sets the lock, of one key, if that is free.
--
-- KEYS: of each key of the lock its fence, and then each key. With more than five of ARGV it runs
-- behind standing.lua: the first two keys and the last two of ARGV are that script's.
--
-- A fence that is missing stands at this server's own time in microseconds. If it does not rise to
-- the token it is stored 10 ms above that time: then a client that learns it has so long to come
-- with a higher one, though the clock goes on. It lives until the server's clock is past it by a
-- week. A token that lies further than ARGV[3] microseconds ahead of that clock is taken only if it
-- is no more than ARGV[4] above the fence.
--
-- Answers 1 when the fence has risen to the token; 0 when the lock is not held with that value, or
-- with a TTL, when another holds it; -f when the lock is held, or was set, and the fence stands at
-- f, which the token is not above, or lies too far ahead of. Never makes a key without an end, and
-- never lets a fence fall. Reads and checks first and writes last: a script is not undone by its
-- own error. An error that is answered, and does not end the script, says that nothing was done.
local own, value, token, ahead, step, ttl = 1, ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
if #ARGV > 5 then
  own = 3
end
local lock = own + (#KEYS - own + 1) / 2
local week_ms, margin, limit = 604800000, 10000, 9007199254740991
for n = 2, 4 do
  if not string.match(ARGV[n], '^%d+$') or #ARGV[n] > 16 or tonumber(ARGV[n]) > limit then
    return redis.error_reply('ERR a fence must be a whole number below 2^53')
  end
end
if not ttl then
  for n = lock, #KEYS do
    local held = redis.pcall('GET', KEYS[n])
    if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
      return held
    end
    if held ~= value then
      return 0
    end
  end
end
local time = redis.pcall('TIME')
if time.err then
  return time
end
local now = time[1] * 1000000 + time[2]
local highest, missing = 0, false
for n = own, lock - 1 do
  local fence = redis.pcall('GET', KEYS[n])
  if type(fence) == 'table' then
    return fence
  end
  missing = missing or not fence
  if fence and (not string.match(fence, '^%d+$') or #fence > 16 or tonumber(fence) > limit) then
    return redis.error_reply('ERR the fence of this lock is not a whole number below 2^53')
  end
  highest = math.max(highest, fence or now)
end
local set = tonumber(token)
local rises = set > highest and set <= math.max(now + ahead, highest + step)
if missing then
  highest = math.max(highest, now + math.min(margin, ahead))
end
if ttl then
  local acquired = redis.pcall('SET', KEYS[lock], value, 'NX', 'PX', ttl)
  if not acquired then
    return 0
  end
  if acquired.err then
    return acquired
  end
end
if rises or missing then
  local stands = rises and set or highest
  local life = math.max(0, math.floor((stands - now) / 1000)) + week_ms
  for n = own, lock - 1 do
    redis.call('SET', KEYS[n], stands, 'PX', life)
  end
end
return rises and 1 or -math.max(highest, 1)
