-- Says who comes next, to the script behind it: one that lets go of a lock, or of a place in its
-- queue.
--
-- In a queue stand writers, by their values, and readers, by an `r`, which begins no value, and
-- theirs. Next is the first that lives; if it reads, so are those that live behind it up to the
-- first writer. They are told by channel, with the first eight digits of the value. (A beat that
-- ends too far away was told before the server's clock was set back.)
local function next_in(queue, beats, leaving, now)
  local found = {}
  for n = 0, 127 do
    local one = redis.pcall('ZRANGE', queue, n, n)[1]
    if not one then
      break
    end
    local ends = redis.pcall('ZSCORE', beats, one)
    ends = one ~= leaving and type(ends) == 'string' and tonumber(ends)
    if ends and ends >= now and ends <= now + 3000 then
      local reads = string.sub(one, 1, 1) == 'r'
      if reads or not found[1] then
        found[#found + 1] = one
      end
      if not reads then
        break
      end
    end
  end
  return found
end
local function tell(found, what)
  for n = 1, #found do
    local nonce, owner = string.match(found[n], '^r?(%x+)@(.*)$')
    if owner then
      redis.pcall('PUBLISH', 'quorlock:wake:' .. owner, what .. ' ' .. string.sub(nonce, 1, 8))
    end
  end
end
-- Where one has left a queue and let go of no lock: a writer that is the first now is told so.
local function tell_first(queue, beats, now)
  local head = redis.pcall('ZRANGE', queue, 0, 0)[1]
  if head and string.sub(head, 1, 1) ~= 'r' then
    tell(next_in(queue, beats, '', now), 'first')
  end
end
