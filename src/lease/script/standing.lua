-- Goes on with the script behind it only if this node may vote.
--
-- KEYS: the deployment's epoch, its quarantine, the lock. The last three of ARGV: the lock's TTL,
-- the deployment's longest TTL, the run_id of this server's process.
--
-- The epoch says which process has kept the locks, and under which longest TTL: a node without it,
-- or with another process's, has lost what it had granted, or may have. It grants nothing until the
-- longest TTL is over.
--
-- Answers {2, ms} while the node may not vote for so long, {3, ms} when the deployment's longest
-- TTL is another, {4, 0} when something else stands where the epoch or the quarantine should. Reads
-- and checks first and writes last, the quarantine before the epoch: a script is not undone by its
-- own error, and a node that has an epoch has its quarantine.
local ttl, longest, name = ARGV[#ARGV - 2], ARGV[#ARGV - 1], ARGV[#ARGV]
if not string.match(ttl, '^%d+$') or not string.match(longest, '^%d+$') then
  return redis.error_reply('ERR a TTL must be a whole number')
end
if tonumber(ttl) > tonumber(longest) then
  return redis.error_reply('ERR no TTL may be above the longest')
end
local epoch, quarantine = redis.pcall('GET', KEYS[1]), redis.pcall('PTTL', KEYS[2])
if type(epoch) == 'table' then
  if string.find(epoch.err, 'WRONGTYPE', 1, true) then
    return {4, 0}
  end
  return epoch
end
if type(quarantine) == 'table' then
  return quarantine
end
if quarantine == -1 then
  return {4, 0}
end
local own = name .. ' ' .. longest
if epoch ~= own then
  if epoch then
    local known = string.match(epoch, '^%w+ (%d+)$')
    if not known then
      return {4, 0}
    end
    if known ~= longest then
      return {3, tonumber(known)}
    end
  end
  redis.call('SET', KEYS[2], name, 'PX', longest)
  redis.call('SET', KEYS[1], own)
  return {2, tonumber(longest)}
end
if quarantine >= 0 then
  return {2, quarantine}
end
