-- Runs one command, of which the caller knows that it changes nothing, as a
-- script of the store would.
--
-- KEYS: key
-- ARGV: command ...
--   what follows the key.
-- Returns: the error of the command as a text; '' for none.

clock() -- as every script does
local rest = {}
for i = 2, #ARGV do rest[i - 1] = ARGV[i] end
local reply = redis.pcall(ARGV.command, KEYS.key, unpack(rest))
return type(reply) == 'table' and reply.err or ''
