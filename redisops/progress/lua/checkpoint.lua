-- Replaces the payload of a timer, if its lease still has a token.
--
-- KEYS: timeline payloads
-- ARGV: id token payload
-- Returns: 1, or 0 if the timer does not have that lease any more, as a text.

local bad = mistyped('zset', 'hash')
if bad then return bad end

local score = redis.call('ZSCORE', KEYS.timeline, ARGV.id)
if not score or not same(score, ARGV.token) then return '0' end
if redis.call('HEXISTS', KEYS.payloads, ARGV.id) == 0 then return '0' end
redis.call('HSET', KEYS.payloads, ARGV.id, ARGV.payload)
return '1'
