-- Asks for a lock in the order of tickets: sets it to ARGV[1] for ARGV[3] milliseconds if it is
-- free here and ARGV[1] has the least ticket of those that wait; of two equal ones the lower value
-- is first. Runs behind standing.lua where servers may forget.
--
-- KEYS, behind those of standing.lua: the lock; its queue, with each waiting value by its ticket;
-- its beats, as turn_ask.lua has them. ARGV[2] is the ticket. With 0 nothing is put into the queue:
-- it asks for the lock if no one waits, and else for the highest ticket.
--
-- One that has the lock here stays in the queue, for its time: others may have it elsewhere. Asked
-- again, it gives way to one with a lower ticket that has come meanwhile, and has that one told.
--
-- Answers {1, 1} when the lock is set and others wait, {1, 0} when none does. Otherwise, to ticket
-- 0, {-1, t} with the highest ticket that stands here. To others {-1, ms}: the least is told what
-- the lock has left to live, the rest -1, or 0 for "ask again": too many before it were dead. The
-- least has the holder told, by its channel, that it is waited for; {-2, ms} says that no one
-- heard, {-3, ms} that readers hold it: it has to watch the lock itself. Never makes a key without
-- an end. Reads and checks first and writes last: a script is not undone by its own error.

-- Behind standing.lua there are two keys more before the lock, and two arguments more.
local before = #ARGV > 3 and 2 or 0
local lock, queue, beats = KEYS[before + 1], KEYS[before + 2], KEYS[before + 3]
local own, ticket, ttl, beat, looks = ARGV[1], tonumber(ARGV[2]), ARGV[3], 1500, 128
if not string.match(ARGV[2], '^%d+$') or ticket > 9007199254740991 then
  return redis.error_reply('ERR a ticket must be a whole number below 2^53')
end
local held, time = redis.pcall('GET', lock), redis.call('TIME')
if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
  return held
end
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local latest = now + 2 * beat
local is_end, first, at, dead = false, nil, nil, {}
for n = 0, looks - 1 do
  local found = redis.call('ZRANGE', queue, n, n, 'WITHSCORES')
  if not found[1] then
    is_end = true
    break
  end
  local ends = redis.call('ZSCORE', beats, found[1])
  if found[1] == own then
    first, at = own, ticket
    break
  elseif not ends or tonumber(ends) < now or tonumber(ends) > latest then
    dead[#dead + 1] = found[1]
  elseif found[1] ~= held then
    first, at = found[1], tonumber(found[2])
    break
  end
end
local is_least = first == own or is_end
if ticket == 0 then
  if held == own or (is_least and not held) then
    redis.call('SET', lock, own, 'PX', ttl)
    return {1, 0}
  end
  local last = redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')
  return {-1, math.max(0, math.min(last[2] or 0, 9007199254740991))}
end
if first and (ticket < at or (ticket == at and own < first)) then
  is_least = true
end
local takes = is_least and (not held or held == own)
local until_last = redis.call('ZRANGE', beats, -1, -1, 'WITHSCORES')
-- A holder that is gone is waited for no longer than its lock lives.
local next_beat = now + (takes and math.min(beat, tonumber(ttl) or beat) or beat)
local ends = string.format('%.0f', math.max(next_beat, math.min(latest, until_last[2] or 0)))
-- Without the right to it nothing is made that would stay.
redis.call('PEXPIREAT', beats, ends)
if #dead > 0 then
  redis.call('ZREM', queue, unpack(dead))
  redis.call('ZREM', beats, unpack(dead))
end
redis.call('ZADD', beats, string.format('%.0f', next_beat), own)
redis.call('PEXPIREAT', beats, ends)
redis.call('ZADD', queue, 'NX', ARGV[2], own)
redis.call('PEXPIREAT', queue, ends)
if takes then
  redis.call('SET', lock, own, 'PX', ttl)
  return {1, redis.call('ZRANGE', queue, 1, 1)[1] and 1 or 0}
end
if held == own then
  redis.call('DEL', lock)
  local nonce, owner = string.match(first or '', '^r?(%x+)@(.*)$')
  if owner then
    redis.pcall('PUBLISH', 'quorlock:wake:' .. owner, 'first ' .. string.sub(nonce, 1, 8))
  end
end
if not is_least then
  return {-1, first and -1 or 0}
end
local owner, heard = type(held) == 'string' and string.match(held, '^%x+@(.-)!?$'), 0
if owner then
  heard = redis.pcall('PUBLISH', 'quorlock:wake:' .. owner, 'wanted ' .. lock)
end
local left = redis.pcall('PTTL', lock)
left = type(left) == 'number' and left or -1
if held == 'quorlock:readers' then
  return {-3, left}
end
return {type(heard) == 'number' and heard > 0 and -1 or -2, left}
