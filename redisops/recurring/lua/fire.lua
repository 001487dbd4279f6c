-- Fires entries of the schedule: each one whose bytes are those that were
-- decided on gets a new meta and score and puts its timers, all at once; the
-- others are left as they are.
--
-- Parts: lock tally fence
-- KEYS: key key ...
--   the schedule and the lock; five of each target: timeline, payloads, leases,
--   hint and counts of a topic, the timeline again where nothing is counted; or
--   list and binding of a Celery queue, then list, binding and list again; or
--   the timeline that timers leave and the index of its outbox, then timeline,
--   index and timeline again; then the hash of each entry.
-- ARGV: token ignored targets members ...
--   token is ours where the lock is to be taken, or empty; ignored the token of
--   a lock that is not, a space and its end in ms. Targets has a code for each: t a topic, c a
--   Celery queue, b where the timers of a topic were before they move. Members is how many entries there are. Then for each entry:
--   its member of the schedule; the definition, meta and third field decided on; the new meta, third
--   field and score; the instant before which it is not due; the number of a
--   target and the id of a timer of it that must be gone, 0 and empty for none, 0
--   and the id for one in another slot, which was there when its topic was asked;
--   the number of the target from which that timer may have yet to move, 0 for none;
--   how many runs, and for each the number of its target, an id, a payload and
--   an instant; for Celery the id is the binding and the payload the message.
-- Returns: now, the holder of the lock or an empty string, the ms it lasts, a
--   letter for each entry, then the three fields of each c. Letters: f fired, c
--   changed, g gone, e too early, o the timer of the last run is there, x the
--   hash is none. Without letters the lock barred all.

local token, ignored, targets, members = ARGV.token, ARGV.ignored, ARGV.targets, tonumber(ARGV.members)
local base = ARGV_NAMED
local first = 2 + 5 * #targets

local bad = mistyped('zset', 'string')
if bad then return bad end
local now = clock()
local holder, left = lock(KEYS[2])
if barred(holder, left, token, ignored, now) then return {text(now), holder, left} end

-- key is the n-th key of a target.
local function key(target, n) return KEYS[2 + 5 * (target - 1) + n] end

local kinds = {t = {'zset', 'hash', 'hash', 'string'}, c = {'list', 'set', 'list', 'set'}, b = {'zset', 'hash'}}
for target = 1, #targets do
  for n, kind in ipairs(kinds[string.sub(targets, target, target)]) do
    local found = redis.call('TYPE', key(target, n)).ok
    if found ~= kind and found ~= 'none' then
      return redis.error_reply('WRONGTYPE ' .. 2 + 5 * (target - 1) + n .. ' ' .. found .. ' ' .. kind)
    end
  end
end

-- exists reports whether a timer is in a topic, or in the one before it or on the way.
local function exists(target, id, before)
  return target == 0 or redis.call('ZSCORE', key(target, 1), id)
    or before > 0 and (redis.call('ZSCORE', key(before, 1), id) or redis.call('HEXISTS', key(before, 2), 'i' .. id) == 1)
end

local codes, changed, ready = {}, {}, {}
local at = base
for i = 1, members do
  local runs = tonumber(ARGV[at + 12])
  local entry = KEYS[first + i]
  local found = redis.pcall('HMGET', entry, 'definition', 'meta', 'wakebell')
  local code = 'f'
  if found.err then
    code = 'x'
  elseif not found[1] then
    code = 'g'
  elseif found[1] ~= ARGV[at + 2] or (found[2] or '') ~= ARGV[at + 3] or (found[3] or '') ~= ARGV[at + 4] then
    code = 'c'
    for n = 1, 3 do changed[#changed + 1] = found[n] or '' end
  elseif tonumber(ARGV[at + 8]) > now then
    code = 'e'
  elseif ARGV[at + 10] ~= '' and exists(tonumber(ARGV[at + 9]), ARGV[at + 10], tonumber(ARGV[at + 11])) then
    code = 'o'
  end
  codes[i] = code
  if code == 'f' then ready[#ready + 1] = {entry, at, runs} end
  if code == 'g' then ready[#ready + 1] = {nil, at, 0} end
  at = at + 12 + 4 * runs
end

local lowest, known, stored = {}, {}, {}

-- put writes a timer. Its id has the instant in it, so that it is new, or the
-- same run, which is not counted again.
local function put(target, id, payload, instant)
  if string.sub(targets, target, target) == 'c' then
    redis.call('LPUSH', key(target, 1), payload)
    redis.call('SADD', key(target, 2), id)
    return
  end
  if not known[target] then known[target] = head(key(target, 1)) or math.huge end
  redis.call('HSET', key(target, 2), id, payload)
  local new = redis.call('ZADD', key(target, 1), instant, id)
  redis.call('HDEL', key(target, 3), id)
  lowest[target] = math.min(lowest[target] or math.huge, tonumber(instant))
  stored[target] = (stored[target] or 0) + new
end

for _, r in ipairs(ready) do
  local a = r[2]
  if not r[1] then
    redis.call('ZREM', KEYS[1], ARGV[a + 1])
  else
    -- The first write is one that a full Redis refuses.
    redis.call('HSET', r[1], 'meta', ARGV[a + 5], 'wakebell', ARGV[a + 6])
    redis.call('ZADD', KEYS[1], ARGV[a + 7], ARGV[a + 1])
    for n = 0, r[3] - 1 do
      local p = a + 12 + 4 * n
      put(tonumber(ARGV[p + 1]), ARGV[p + 2], ARGV[p + 3], ARGV[p + 4])
    end
  end
end
if token ~= '' then take(KEYS[2], token) end
for target, n in pairs(stored) do
  if n > 0 and key(target, 5) ~= key(target, 1) then tally(key(target, 5), now, 's', n) end
end
for target, instant in pairs(lowest) do
  if instant < known[target] then announce(key(target, 4), instant, now) end
end
local out = {text(now), holder, left, join(codes)}
for i = 1, #changed do out[#out + 1] = changed[i] end
return out
