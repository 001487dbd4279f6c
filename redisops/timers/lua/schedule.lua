-- Schedules a batch of timers; all of it or, when memory is full, nothing.
--
-- Parts: tally keys_off fence
--   keys: tally keys keys_states keys_order keys_written fence
-- KEYS: timeline payloads leases hint counts ...
--   counts is used only if counting is 1; then come the once keys of the timers that
--   have one, in order. The last are the keys of timers and, if keys
--   is 1, their order and their states.
-- ARGV: policies onces instants counting keys ...
--   policies has one code for each timer: r replace, k keep, e earliest, d
--   debounce; onces a code for each: o or -; instants is how many there are:
--   one for each timer, or 1 for all; counting is 1 if the timers are counted, else 0:
--   all that are written, but not those that are the same as before; keys is 1 if timers
--   have a key, else 0.
--   Then come the ids, each with its payload, and the
--   instants: seconds since 1970, or a delay in µs from now after a '+'; then for
--   each d the most µs since it was first scheduled, 0 for no bound; then for
--   each o its window in µs; then, if keys is 1, for each timer its key, '' for none.
-- Returns: one string, "a due\n" where all were created with that instant, else
--   for each timer "outcome due found\n"; outcome is c created, r replaced,
--   s superseded, p kept pending, k kept running, e kept earlier, m moved,
--   o already done; due in seconds, found the score that was found, or - for
--   none.
--   Or the error WAKEBELLORDER, if keys is 0 and the id of a timer has a key: nothing is
--   done then, and the call is to be made with keys.

local policies, onces, instants = ARGV.policies, ARGV.onces, tonumber(ARGV.instants)
local base, count = ARGV_NAMED, #ARGV.policies
local extra = base + 2 * count + instants -- the longest times of each d come after it
local _, marked = string.gsub(onces, 'o', '')
local _, debounced = string.gsub(policies, 'd', '')

local kinds = {'zset', 'hash', 'hash', 'string', false}
for i = 1, marked do kinds[5 + i] = 'string' end
local with_keys = ARGV.keys == '1'
for _, kind in ipairs(with_keys and {'hash', 'zset', 'hash'} or {'hash'}) do kinds[#kinds + 1] = kind end
local bad = mistyped(unpack(kinds))
if bad then return bad end

-- Timers that have a key keep it, and others of the key may wait for them. A user without
-- a right to the keys of timers has lease records in their place.
if not with_keys and redis.call('EXISTS', KEYS[#KEYS]) == 1 then
  local ids = {}
  for i = 1, count do ids[i] = ARGV[base + 2 * i - 1] end
  for _, entry in ipairs(collect('HMGET', KEYS[#KEYS], ids, 1, count)) do
    if entry and string.find(entry, '^%d') then return redis.error_reply('WAKEBELLORDER the id of a timer has a key') end
  end
end

local timeline, payloads, leases = KEYS.timeline, KEYS.payloads, KEYS.leases
local now = clock()
local known = head(timeline) or math.huge
local lowest = math.huge

-- note_keys notes the keys of timers that were written: dues has the instant of each of
-- them by its number; olds has the entry, and found the score, that its id had.
local function note_keys(dues, olds, found)
  local list = {}
  for i = 1, count do
    local key = ARGV[extra + debounced + marked + i]
    if dues[i] and (key ~= '' or olds[i]) then
      list[#list + 1] = {id = ARGV[base + 2 * i - 1], key = key ~= '' and key or nil,
        instant = dues[i], entry = olds[i], score = found[i]}
    end
  end
  if keyed.schedule(list, text(now)) then lowest = math.min(lowest, now) end
end

if with_keys then keyed.open(KEYS[#KEYS - 2], KEYS[#KEYS - 1], KEYS[#KEYS], timeline, leases) end

local function id_of(i) return ARGV[base + 2 * i - 1] end

-- instant is when the i-th timer is to be due, as a number and as text. Those
-- of a batch are often the same, and each costs as much as the rest of a timer.
local last_at, last_due, last_text
local function instant(i)
  local at = ARGV[base + 2 * count + (instants == 1 and 1 or i)]
  if at ~= last_at then
    last_at = at
    if string.sub(at, 1, 1) == '+' then
      last_due = now + tonumber(string.sub(at, 2)) / 1e6
    else
      last_due = tonumber(at)
    end
    last_text = text(last_due)
  end
  return last_due, last_text
end

-- How many arguments the commands of a batch get at a time, an even number. They
-- are copied, and with more of them the copies leave the processor's caches.
local STEP = 250

-- The quick way: nothing of the timers depends on what was there, but for the answer,
-- because all replace and none leaves a mark. Then the timeline itself tells which are new,
-- which most often all of them are; if the first is not, the others are hardly new. Timers
-- with a key take it only while nothing is leased: a record may be that of an earlier timer
-- of the same id, which holds its key.
local recorded_any = redis.call('HLEN', leases) > redis.call('HEXISTS', leases, '')
local quick = marked == 0 and not string.find(policies, '[^r]') and not (with_keys and recorded_any) and
  not redis.call('ZSCORE', timeline, id_of(1))
local added = 0
if quick then
  local fresh = {}
  local due, due_text = instant(1)
  lowest = due
  for i = 1, count do
    if instants > 1 then
      due, due_text = instant(i)
      if due < lowest then lowest = due end
    end
    fresh[2 * i - 1], fresh[2 * i] = due_text, id_of(i)
  end
  for i = 1, 2 * count, STEP do
    added = added + redis.call('ZADD', timeline, 'NX', unpack(fresh, i, math.min(i + STEP - 1, 2 * count)))
  end
  if added == count then
    if recorded_any then -- of ids that a peer removed without their records
      local ids = {}
      for i = 1, count do ids[i] = fresh[2 * i] end
      variadic('HDEL', leases, ids, 1, count, STEP)
    end
    variadic('HSET', payloads, ARGV, base + 1, base + 2 * count, STEP)
    if with_keys then
      local dues = {}
      for i = 1, count do dues[i] = number(fresh[2 * i - 1]) end
      note_keys(dues, {}, {})
    end
    if ARGV.counting == '1' then tally(KEYS.counts, now, 's', count) end
    if lowest < known then announce(KEYS.hint, lowest, now) end
    if instants == 1 then return 'a ' .. fresh[1] .. '\n' end
    local lines = {}
    for i = 1, count do lines[i] = 'c ' .. fresh[2 * i - 1] .. ' -\n' end
    return table.concat(lines)
  end
end

local ids = {}
for i = 1, count do ids[i] = id_of(i) end
local scores = collect('ZMSCORE', timeline, ids, 1, count)
local records = recorded_any and collect('HMGET', leases, ids, 1, count) or {}
local bodies, scored, recorded, dropped, marks, out = {}, {}, {}, {}, {}, {}
local olds, dues = {}, {} -- for note_keys
local superseded = {}     -- ids of timers that were replaced while they were leased
if with_keys then olds = collect('HMGET', KEYS[#KEYS - 2], ids, 1, count) end

if added > 0 then
  -- Some are there only since a moment ago. One whose score is another was there
  -- before; if those are not all that were, the others had payloads already.
  local before, equal = 0, {}
  for i = 1, count do
    local _, due_text = instant(i)
    if same(scores[i], due_text) then equal[#equal + 1] = i else before = before + 1 end
  end
  for _, i in ipairs(equal) do
    if before + added == count or redis.call('HEXISTS', payloads, ids[i]) == 0 then scores[i] = false end
  end
end

-- overdue_since is since when a timer is due whose next delivery is at the instant found,
-- for PolicyEarliest. That is later for one that was claimed: the end of its lease, which
-- has expired, or when it was woken after that.
local function overdue_since(found, r)
  if r and not r.tried then return math.min(number(found), number(r.activation)) end
  return number(r and r.state == 'l' and r.before or found)
end

-- decide says what becomes of a timer that was due at the instant found (nil: there is
-- none) and has that record, by a holder or not, and mark, what a once key has of it.
local function decide(policy, due, found, r, held, mark)
  local kept = held and 'k' or 'p'
  if mark and not found then return 'o' end
  -- It was delivered, or moved, since the mark was made.
  if mark and not undelivered(mark, found, r) then return kept end
  if not found then return 'c' end
  if policy == 'k' then return kept end
  if held then return 's' end
  if policy == 'e' and overdue_since(found, r) <= due then return 'e' end
  return policy == 'd' and 'm' or 'r'
end

local n = 0 -- how long bodies and scored are
local function put(i, due, r, first)
  local id = ids[i]
  -- The score of a lease is its token: the new one must be another.
  if r and r.state == 'l' and due == number(scores[i]) then due = due + 1e-6 end
  local due_text = text(due)
  bodies[n + 1], bodies[n + 2] = id, ARGV[base + 2 * i]
  scored[n + 1], scored[n + 2] = due_text, id
  n = n + 2
  if first then
    recorded[#recorded + 1] = id
    recorded[#recorded + 1] = record('w',
      {claims = 0, failures = 0, activation = due_text, before = '', first = first, err = ''}, due_text)
  elseif records[i] then
    dropped[#dropped + 1] = id
  end
  lowest = math.min(lowest, due)
  return due_text
end

-- The timers that are scheduled as they are, unless their payloads differ: their ids, and
-- their numbers. A call that is repeated because its reply was lost has them.
local alike, alike_at = {}, {}
local compares = ARGV.counting == '1'

-- seems_alike reports whether a timer that was found with a score and a payload of that size,
-- and without a lease record, is scheduled with the same instant, size and key.
local function seems_alike(i, due_text, score, size)
  if records[i] or size ~= #ARGV[base + 2 * i] then return false end
  local place, key = keyed.place_of(olds[i])
  if keyed.parked(score) then score = place and keyed.instant_of(place) or score end
  local wanted = with_keys and ARGV[extra + debounced + marked + i] or ''
  return same(score, due_text) and (wanted == '' or wanted == key)
end

local d, o = 0, 0
for i = 1, count do
  local policy = string.sub(policies, i, i)
  local due, score = instant(i), scores[i]
  local r = score and current(records[i], score)
  -- A timeline entry without a payload counts as absent.
  local size = score and redis.call('HSTRLEN', payloads, ids[i])
  if size == 0 and redis.call('HEXISTS', payloads, ids[i]) == 0 then score = nil end
  local held = score and running(r, score, now)

  local key, mark, window
  if string.sub(onces, i, i) == 'o' then
    o = o + 1
    key, window = KEYS[5 + o], ARGV[extra + debounced + o]
    mark = string.match(redis.call('GET', key) or '', '^%S+')
    if mark and not number(mark) then mark = nil end
  end
  local first
  if policy == 'd' then
    d = d + 1
    local most = tonumber(ARGV[extra + d])
    first = text(now)
    if score and not held and r and r.first ~= '' then first = r.first end
    if most > 0 then due = math.min(due, number(first) + most / 1e6) end
  end

  local found = score and keyed.due_of(score, r, olds[i], now)
  local outcome, due_text = decide(policy, due, found, r, held, mark), nil
  if outcome == 'o' then
    due_text = mark
  elseif outcome == 'p' or outcome == 'k' or outcome == 'e' then
    due_text = r and r.activation or found
  else
    due_text = put(i, due, r, first)
    if compares and score and (mark or not key) and seems_alike(i, due_text, score, size) then
      alike[#alike + 1], alike_at[#alike_at + 1] = ids[i], i
    end
    dues[i] = number(due_text)
    if outcome == 's' and policy == 'r' then superseded[#superseded + 1] = ids[i] end
    if key then
      local has_key = with_keys and (olds[i] or ARGV[extra + debounced + marked + i] ~= '')
      marks[#marks + 1] = {key, due_text, window, has_key}
    end
  end
  out[i] = outcome .. ' ' .. due_text .. ' ' .. (score and not keyed.parked(score) and score or '-') .. '\n'
end

if #recorded > 0 then
  recorded[#recorded + 1], recorded[#recorded + 2] = '', SENTINEL
end
local changed = #scored / 2 -- the timers that are counted
for j, payload in ipairs(collect('HMGET', payloads, alike, 1, #alike)) do -- as many bytes as the batch has
  if payload == ARGV[base + 2 * alike_at[j]] then changed = changed - 1 end
end
-- The first write is one that a full Redis refuses.
variadic('HSET', payloads, bodies, 1, #bodies)
variadic('ZADD', timeline, scored, 1, #scored)
variadic('HDEL', leases, dropped, 1, #dropped)
variadic('HSET', leases, recorded, 1, #recorded)
if with_keys then note_keys(dues, olds, scores) end
for _, m in ipairs(marks) do mark_once(m[1], m[2], m[3], m[4], now) end
if ARGV.counting == '1' and changed > 0 then tally(KEYS.counts, now, 's', changed) end
if lowest < known then announce(KEYS.hint, lowest, now) end
-- A holder that has claimed one early does not begin it any more.
recheck_all(KEYS.hint, superseded, now)
return table.concat(out)
