do
  -- Goes in front of a script that writes: lets it run if no higher fence than this one has
  -- written, and notes this one. Of the keys the last one is where the highest fence stands; of the
  -- arguments the last two are this fence, and 1 where each holder writes once. The script behind
  -- it sees none of the three.
  local standing, tried, once = KEYS[#KEYS], ARGV[#ARGV - 1], ARGV[#ARGV]
  local stands = redis.call('GET', standing) or '0'
  if not string.match(stands, '^%d+$') or #stands > 16 then
    return redis.error_reply('ERR the key ' .. standing .. ' holds something else than a fence')
  end
  local above = tonumber(tried) - tonumber(stands)
  if above < 0 or above == 0 and once == '1' then
    return redis.error_reply('STALE ' .. stands)
  end
  redis.call('SET', standing, tried)
  KEYS[#KEYS] = nil
  ARGV[#ARGV] = nil
  ARGV[#ARGV] = nil
end
