-- Counts the timers and dead letters of a topic.
--
-- KEYS: timeline dead
-- ARGV: none
-- Returns: the timers, those due now, the dead letters; as texts.

local bad = mistyped('zset', 'stream')
if bad then return bad end

return {
  string.format('%.0f', redis.call('ZCARD', KEYS[1])),
  string.format('%.0f', redis.call('ZCOUNT', KEYS[1], '-inf', text(clock()))),
  string.format('%.0f', redis.call('XLEN', KEYS[2])),
}
