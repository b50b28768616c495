-- Puts a node into service at once, for an operator who knows that no lock is held.
--
-- KEYS: the deployment's epoch and its quarantine. ARGV: 'look' or 'write', the longest TTL, the
-- name of this server's process. See the script that acquires.
--
-- Answers, to 'look', 1 when the node is in service and 0 when it is not; to 'write', 1 when it is
-- now; to both {3, ms} when the deployment's longest TTL is another and {4, 0} when something else
-- stands where the epoch or the quarantine should. Reads first and writes last, and lifts the
-- quarantine behind everything else.
local longest, name = ARGV[2], ARGV[3]
if not string.match(longest, '^%d+$') then
  return redis.error_reply('ERR a TTL must be a whole number')
end
local epoch, left = redis.pcall('GET', KEYS[1]), redis.pcall('PTTL', KEYS[2])
if type(epoch) == 'table' then
  if string.find(epoch.err, 'WRONGTYPE', 1, true) then
    return {4, 0}
  end
  return epoch
end
if type(left) == 'table' then
  return left
end
if left == -1 then
  return {4, 0}
end
if epoch then
  local known = string.match(epoch, '^%w+ (%d+)$')
  if not known then
    return {4, 0}
  end
  if known ~= longest then
    return {3, tonumber(known)}
  end
end
local own = name .. ' ' .. longest
if ARGV[1] == 'write' then
  redis.call('SET', KEYS[1], own)
  redis.call('DEL', KEYS[2])
  return 1
end
if epoch == own and left == -2 then
  return 1
end
return 0
