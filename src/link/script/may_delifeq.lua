-- Whether this user may say DELIFEQ about the key ARGV[1], on a server that knows the command.
--
-- Answers 1 or 0. To ask so is no refusal: nothing of it stands in the server's log or its counts.
-- The key is an argument, for of a key that is declared a missing right is refused; it stands for
-- the value as well.
local known, may = pcall(redis.acl_check_cmd, 'DELIFEQ', ARGV[1], ARGV[1])
if known and may then
  return 1
end
return 0
