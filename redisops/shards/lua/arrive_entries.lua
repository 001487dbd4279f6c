-- Adds entries of a stream that were taken out of another topic, once.
--
-- Parts: fence
-- KEYS: stream arrived
-- ARGV: token keep life ...
--   token: of the batch; keep: the ms for which it is remembered; life: those after which
--   the stream expires, 0 for never; then for each entry the number of its fields and
--   values, and these.
-- Returns: how many entries were added, as a text.

local bad = mistyped('stream', 'hash')
if bad then return bad end
if redis.call('HEXISTS', KEYS.arrived, ARGV.token) == 1 then return '0' end

local i, added = ARGV_NAMED + 1, 0
while i <= #ARGV do
  local n = tonumber(ARGV[i])
  redis.call('XADD', KEYS.stream, '*', unpack(ARGV, i + 1, i + n))
  i, added = i + n + 1, added + 1
end
if ARGV.life ~= '0' then redis.call('PEXPIRE', KEYS.stream, ARGV.life) end
redis.call('HSET', KEYS.arrived, ARGV.token, '1')
redis.call('PEXPIRE', KEYS.arrived, ARGV.keep)
return string.format('%.0f', added)
