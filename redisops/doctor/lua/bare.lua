-- Counts timers that have no payload, a page a call.
--
-- KEYS: timeline payloads
-- ARGV: cursor count
-- Returns: the next cursor ('0' at the end), how many were examined, and how
--   many of them have none; as texts.

local bad = mistyped('zset', 'hash')
if bad then return bad end

local page = redis.call('ZSCAN', KEYS.timeline, ARGV.cursor, 'COUNT', ARGV.count)
local examined, bare = 0, 0
for i = 1, #page[2], 2 do
  examined = examined + 1
  if redis.call('HEXISTS', KEYS.payloads, page[2][i]) == 0 then bare = bare + 1 end
end
return {page[1], string.format('%.0f', examined), string.format('%.0f', bare)}
