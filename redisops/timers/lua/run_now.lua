-- Makes a timer due now. One that runs is left alone.
--
-- Parts: keys keys_states keys_order keys_written fence
-- KEYS: timeline payloads leases hint keys order busy
-- ARGV: id
-- Returns: one letter: a absent, p pending, r running.

local bad = mistyped('zset', 'hash', 'hash', 'string', 'hash', 'zset', 'hash')
if bad then return bad end

local timeline, payloads, leases, id = KEYS.timeline, KEYS.payloads, KEYS.leases, ARGV.id
local score = redis.call('ZSCORE', timeline, id)
if not score or redis.call('HEXISTS', payloads, id) == 0 then return 'a' end

local now = clock()
local r = current(redis.call('HGET', leases, id), score)
if running(r, score, now) then return 'r' end
if number(score) > now and not keyed.parked(score) and not waits_for_token(r) then
  local now_text = text(now)
  local known = head(timeline)
  -- The first write must be one that Redis allows when its memory is full: the timer of a join
  -- is run so whose parts have ended.
  redis.call('HDEL', leases, SENTINEL)
  redis.call('ZADD', timeline, now_text, id)
  if r then
    -- A timer that was delivered keeps its activation and its attempts.
    if r.claims == 0 and not r.tried then r.activation = now_text end
    r.before = r.activation
    redis.call('HSET', leases, id, record('w', r, now_text))
  end
  local entry = redis.call('HGET', KEYS.keys, id)
  if keyed.place_of(entry) and not (r and (r.claims > 0 or r.tried)) then
    keyed.open(KEYS.keys, KEYS.order, KEYS.busy, timeline, leases)
    keyed.schedule({{id = id, instant = now, entry = entry, score = score}}, now_text)
  end
  if now < known then announce(KEYS.hint, now, now) end
end
return 'p'
