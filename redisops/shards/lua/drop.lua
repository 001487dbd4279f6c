-- Removes a batch from an outbox: its timers are stored where they belong.
--
-- KEYS: moving taken
-- ARGV: token ...
--   token: of the batch; then the fields of its timers and keys in the index.
-- Returns: 1 if the batch was there, else 0; as a text.

local bad = mistyped('hash', 'hash')
if bad then return bad end

local fields, gone = {}, {}
for i = ARGV_NAMED + 1, #ARGV do fields[#fields + 1] = ARGV[i] end
local tokens = collect('HMGET', KEYS.taken, fields, 1, #fields)
for i, field in ipairs(fields) do
  if tokens[i] == ARGV.token then gone[#gone + 1] = field end
end
variadic('HDEL', KEYS.taken, gone, 1, #gone)
local found = redis.call('HDEL', KEYS.moving, ARGV.token)
-- What counts batches stays behind the last of them. The index of a move has a name and
-- an expiry of its own; a key that moves in several steps is in the index until the last.
if redis.call('EXISTS', KEYS.moving) == 0 and redis.call('HEXISTS', KEYS.taken, 'm') == 0 and
  redis.call('HEXISTS', KEYS.taken, 'p') == 0 then
  redis.call('PEXPIRE', KEYS.taken, '86400000')
end
return string.format('%.0f', found)
