-- Removes the result of a run whose ack was refused, unless another run has written one since.
--
-- KEYS: kept
-- ARGV: token
--   that of the lease with which the result was written.
-- Returns: 1 if it was removed, else 0, as a text.

local bad = mistyped('hash')
if bad then return bad end

local wrote = redis.call('HGET', KEYS.kept, 't')
if not wrote or not same(wrote, ARGV.token) then return '0' end
redis.call('HDEL', KEYS.kept, 'r', 't')
return '1'
