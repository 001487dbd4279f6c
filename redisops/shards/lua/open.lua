-- Opens the key that was closed because its timers were moved in several steps, when they
-- are not moved on: put after keys_order.lua.
--
-- Parts: keys keys_states keys_order
-- KEYS: timeline leases hint keys order busy index
-- ARGV: move
--   move: the name of the move, which another process may have ended.
-- Returns: 1 if there was such a key, else 0; as a text.

local bad = mistyped('zset', 'hash', 'string', 'hash', 'zset', 'hash', 'hash')
if bad then return bad end

local key = string.match(redis.call('HGET', KEYS.index, 'p') or '', '^%d+ (.*)$')
if not key or redis.call('HGET', KEYS.index, 'm') ~= ARGV.move then return '0' end
local now = clock()
keyed.open(KEYS.keys, KEYS.order, KEYS.busy, KEYS.timeline, KEYS.leases)
read_states({key})
local state = state_of(key)
if state and state.closed then
  keyed.reopen(key, state, now)
  keyed.write(text(now))
end
redis.call('HDEL', KEYS.index, 'p')
announce(KEYS.hint, now, now)
return '1'
