-- Frees keys whose holders are gone, and wakes the timers that wait for them, a page a
-- call.
--
-- KEYS: timeline leases hint keys order busy
-- ARGV: cursor count limit longest
--   limit: the most timers of a key at once, 0 for no bound; longest: the µs for which a
--   timer may wait for a token.
-- Returns: the next cursor ('0' at the end), and how many timers it woke; as texts.

local bad = mistyped('zset', 'hash', 'string', 'hash', 'zset', 'hash')
if bad then return bad end

local timeline, states = KEYS.timeline, KEYS.busy
local now = clock()
local now_text = text(now)
keyed.open(KEYS.keys, KEYS.order, states, timeline, KEYS.leases)
local limit = tonumber(ARGV.limit)
if limit == 0 then limit = CHUNK end

local latest = now + tonumber(ARGV.longest) / 1e6

-- wake_waiting makes timers due that wait for a token for too long, and returns how many:
-- a rate limit was raised or removed, or the clock was set back.
local function wake_waiting(ids)
  local scores = collect('ZMSCORE', timeline, ids, 1, #ids)
  local late, at = {}, {}
  for i, id in ipairs(ids) do
    if scores[i] and number(scores[i]) > latest then late[#late + 1], at[#at + 1] = id, scores[i] end
  end
  local found, woken = collect('HMGET', KEYS.leases, late, 1, #late), 0
  for i, id in ipairs(late) do
    local r = current(found[i], at[i])
    if waits_for_token(r) then
      redis.call('ZADD', timeline, now_text, id)
      redis.call('HSET', KEYS.leases, id, record('w', r, now_text))
      woken = woken + 1
    end
  end
  return woken
end

local page = redis.call('HSCAN', states, ARGV.cursor, 'COUNT', ARGV.count)
local names, waiting, woken = {}, {}, 0
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
    else
      waiting[#waiting + 1] = state.sole
    end
  elseif state then
    keyed.verify(key, state, now)
    for _, id in ipairs(state.held) do waiting[#waiting + 1] = id end
    woken = woken + #keyed.wake(key, limit - #state.held, 0)
  end
end
keyed.write(now_text)
woken = woken + wake_waiting(waiting)
if page[1] == '0' and redis.call('HLEN', states) == redis.call('HEXISTS', states, '') and
  redis.call('EXISTS', KEYS.keys) == 0 then
  redis.call('UNLINK', states, KEYS.order)
end
if woken > 0 then announce(KEYS.hint, now, now) end
return {page[1], string.format('%.0f', woken)}
