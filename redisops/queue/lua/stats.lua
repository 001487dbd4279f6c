-- Describes a queue in numbers.
--
-- Parts: shared
-- KEYS: pending processing deadlines completed failed dlq gone
-- ARGV: none
-- Returns: the clock, then how many messages are pending, in processing, have a
--   lease, have one that has ended, are completed, failed, dead; as texts; then
--   the oldest message that is pending, '' for none.

local bad = mistyped('list', 'list', 'zset', 'list', 'list', 'list', 'set')
if bad then return bad end
local now, now_ms = instants()
return {
  text(now), whole(redis.call('LLEN', KEYS.pending)),
  whole(redis.call('LLEN', KEYS.processing) - redis.call('SCARD', KEYS.gone)), whole(redis.call('ZCARD', KEYS.deadlines)),
  whole(redis.call('ZCOUNT', KEYS.deadlines, '-inf', whole(now_ms))), whole(redis.call('LLEN', KEYS.completed)),
  whole(redis.call('LLEN', KEYS.failed)), whole(redis.call('LLEN', KEYS.dlq)),
  redis.call('LINDEX', KEYS.pending, -1) or '',
}
