-- Frees keys whose holders are gone, and wakes the timers that wait for them, a page a
-- call.
--
-- KEYS: timeline leases hint keys order busy
-- ARGV: cursor count limit
--   limit: the most timers of a key at once, 0 for no bound.
-- Returns: the next cursor ('0' at the end), and how many timers it woke; as texts.

local bad = mistyped('zset', 'hash', 'string', 'hash', 'zset', 'hash')
if bad then return bad end

local timeline, states = KEYS.timeline, KEYS.busy
local now = clock()
local now_text = text(now)
keyed.open(KEYS.keys, KEYS.order, states, timeline, KEYS.leases)
local limit = tonumber(ARGV.limit)
if limit == 0 then limit = CHUNK end

local page = redis.call('HSCAN', states, ARGV.cursor, 'COUNT', ARGV.count)
local names, woken = {}, 0
for i = 1, #page[2], 2 do
  if page[2][i] ~= '' then names[#names + 1] = page[2][i] end
end
read_states(names)
for _, key in ipairs(names) do
  local state = state_of(key)
  if state and state.sole then
    if not redis.call('ZSCORE', timeline, state.sole) then
      redis.call('HDEL', KEYS.keys, state.sole)
      set_state(key, false)
    end
  elseif state then
    keyed.verify(key, state, now)
    woken = woken + #keyed.wake(key, limit - #state.held)
  end
end
keyed.write(now_text)
if page[1] == '0' and redis.call('HLEN', states) == redis.call('HEXISTS', states, '') and
  redis.call('EXISTS', KEYS.keys) == 0 then
  redis.call('UNLINK', states, KEYS.order)
end
if woken > 0 then announce(KEYS.hint, now, now) end
return {page[1], string.format('%.0f', woken)}
