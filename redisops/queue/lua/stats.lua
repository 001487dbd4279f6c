-- Describes a queue in numbers.
--
-- KEYS: pending processing deadlines completed failed dlq gone
-- ARGV: none
-- Returns: the clock, then how many messages are pending, in processing, have a
--   lease, have one that has ended, are completed, failed, dead; as texts; then
--   the oldest message that is pending, '' for none.

local bad = mistyped('list', 'list', 'zset', 'list', 'list', 'list', 'set')
if bad then return bad end
local now, now_ms = instants()
return {
  text(now), whole(redis.call('LLEN', KEYS[1])),
  whole(redis.call('LLEN', KEYS[2]) - redis.call('SCARD', KEYS[7])), whole(redis.call('ZCARD', KEYS[3])),
  whole(redis.call('ZCOUNT', KEYS[3], '-inf', whole(now_ms))), whole(redis.call('LLEN', KEYS[4])),
  whole(redis.call('LLEN', KEYS[5])), whole(redis.call('LLEN', KEYS[6])),
  redis.call('LINDEX', KEYS[1], -1) or '',
}
