do
  -- Goes in front of a script: lets it run if none of its keys has been reached by a higher fence
  -- than this one, and notes this one. The second half of the keys is where the highest fence of
  -- each key in the first half is kept; the last two arguments are this fence, and 1 for a script
  -- that is to run once under it. The script itself sees none of these.
  local keys, tried, once = #KEYS / 2, tonumber(ARGV[#ARGV - 1]), ARGV[#ARGV]
  local below, used = {}, nil
  for n = keys + 1, #KEYS do
    local found, accepted = redis.call('GET', KEYS[n]), -1
    if found then
      accepted = tonumber(found)
      if not string.match(found, '^%d+$') or accepted > 9007199254740991 then
        return redis.error_reply('ERR the key ' .. KEYS[n] .. ' holds something else than a fence')
      end
    end
    if accepted > tried then
      return redis.error_reply('QUORLOCKSTALE ' .. found)
    end
    if accepted == tried and once == '1' then
      used = found
    end
    below[n] = accepted < tried
  end
  if used then
    return redis.error_reply('QUORLOCKSTALE ' .. used)
  end
  for n = keys + 1, #KEYS do
    if below[n] then
      redis.call('SET', KEYS[n], ARGV[#ARGV - 1])
    end
  end
  for n = 1, keys do
    table.remove(KEYS)
  end
  table.remove(ARGV)
  table.remove(ARGV)
end
