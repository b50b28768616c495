-- Marks the value ARGV[1] of the lock KEYS[1] as revoked, by a `!` behind it: its holder is asked
-- to let go of it.
--
-- The key lives on for as long as it would have, or for ARGV[2] milliseconds if that is longer. Its
-- holder's extensions find another value, so that the lock ends then; until that, or until the
-- holder has released it, it is held for all others. Repeated, it tells the holder once more: by
-- its channel, with the first eight digits of the value.
--
-- Answers {1, ms} when it did, with what the key has left to live then; 0 when there is no such
-- key, -1 when it holds something else, or never expires. Never makes a key. Reads and checks first
-- and writes last: a script is not undone by its own error.
local held, left, revoked = redis.pcall('GET', KEYS[1]), redis.call('PTTL', KEYS[1]), ARGV[1] .. '!'
if not held then
  return 0
end
if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
  return held
end
if left == -1 or (held ~= ARGV[1] and held ~= revoked) then
  return -1
end
if left < tonumber(ARGV[2]) then
  redis.call('SET', KEYS[1], revoked, 'XX', 'PX', ARGV[2])
  left = tonumber(ARGV[2])
elseif held ~= revoked then
  redis.call('SET', KEYS[1], revoked, 'XX', 'KEEPTTL')
end
local nonce, owner = string.match(ARGV[1], '^(%x+)@(.*)$')
if owner then
  redis.pcall('PUBLISH', 'quorlock:wake:' .. owner, 'revoked ' .. string.sub(nonce, 1, 8))
end
return {1, left}
