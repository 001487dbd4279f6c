-- Prelude: put before every script. It has the clock, the format of scores,
-- the check of types, the lease record and the hint.

-- More than 1,000 arguments at once overflow the stack of some Lua.
local CHUNK = 1000

-- The field '' of the leases is no lease. Its value is over 64 bytes, which
-- turns the hash into a hash table: as a listpack it would be searched
-- linearly, at twice the cost per timer.
local SENTINEL = 'not a lease: this field keeps the hash a hash table, whose look-ups do not scan'

-- HINT_LIFE bounds, in milliseconds, for how long a hint without a receiver
-- holds back the next one: two default polling intervals.
local HINT_LIFE = '10000'

-- ONCE_LIFE bounds, in milliseconds, the life of a mark: 100 years.
local ONCE_LIFE = 3155760000000

-- FARTHEST bounds a time that is answered in µs, 285 years: a score may lie so
-- far off that its µs do not fit into an integer.
local FARTHEST = 9e15

local function clock()
  local t = redis.call('TIME')
  return tonumber(t[1]) + tonumber(t[2]) / 1e6
end

-- text is the only way in which an instant leaves a script: every digit of
-- it, so that what is stored and what is answered are the same number.
local function text(x)
  return string.format('%.17g', x)
end

-- number reads a score: what ReadScore of score.go reads, and nothing else. A
-- tonumber of Lua reads more, such as 'nan', '0x10' and ' 5'. Its answer would be
-- a score that Go, or ZADD, refuses.
local function number(s)
  -- Some Lua reads integers of 64 bits only where there is no point.
  if string.find(s, '^[1-9]%d*%.?%d*$') then return tonumber(s) or tonumber(s .. '.') end
  if s == 'inf' or s == '+inf' then return math.huge end
  if s == '-inf' then return -math.huge end
  local digits, whole, power = string.match(s, '^(%-?(%d+)%.?%d*)(.*)$')
  if not digits or string.find(whole, '^0%d') then return nil end
  if power == '' then return tonumber(digits) or tonumber(digits .. '.') end
  power = string.match(power, '^e([+-]?%d+)$')
  if not power or #power > 4 then return nil end
  local x = tonumber(s)
  if x then return x end
  -- Some Lua does not read exponents.
  return tonumber(digits) * 10 ^ tonumber((string.gsub(power, '%+', '')))
end

-- EXACT is the highest number up to which Lua counts every integer.
local EXACT = 2 ^ 53 - 1

-- integer reads a stored ticket, sequence or instant in whole units: digits up to
-- EXACT. Anything else, as what is not there, is nil.
local function integer(s)
  if not s or #s > 16 or not (s == '0' or string.find(s, '^[1-9]%d*$')) then return nil end
  local n = tonumber(s)
  return n <= EXACT and n or nil
end

-- counted reports whether s is a count that leaves Lua as it came: with ten
-- digits and more it could become 1e+15.
local function counted(s)
  return #s <= 9 and (s == '0' or string.find(s, '^[1-9]%d*$') ~= nil)
end

-- until_due is the time to an instant in µs, as a text: 0 when it is due. What
-- is due within half a µs is not 0.
local function until_due(instant, now)
  if instant <= now then return '0' end
  return string.format('%.0f', math.max(1, math.min(math.floor((instant - now) * 1e6 + 0.5), FARTHEST)))
end

-- same compares scores as numbers, for a score may read back with other
-- digits than it was written with.
local function same(a, b)
  if a == b then return true end
  local x = number(a)
  return x ~= nil and x == number(b)
end

-- mistyped gives an error when KEYS[i] holds anything but the i-th kind; false
-- stands for any. A script is not rolled back, so it must know before its first
-- write.
local function mistyped(...)
  local kinds = {...}
  for i = 1, #kinds do
    local found = kinds[i] and redis.call('TYPE', KEYS[i]).ok
    if found ~= kinds[i] and found ~= 'none' then
      return redis.error_reply('WRONGTYPE ' .. i .. ' ' .. found .. ' ' .. kinds[i])
    end
  end
  return nil
end

local function variadic(command, key, list, from, to, step)
  step = step or CHUNK
  for i = from, to, step do
    redis.call(command, key, unpack(list, i, math.min(i + step - 1, to)))
  end
end

local function collect(command, key, list, from, to)
  if to < from then return {} end
  if to - from < CHUNK then return redis.call(command, key, unpack(list, from, to)) end
  local all = {}
  for i = from, to, CHUNK do
    local part = redis.call(command, key, unpack(list, i, math.min(i + CHUNK - 1, to)))
    for j = 1, #part do all[#all + 1] = part[j] end
  end
  return all
end

-- join concatenates any number of strings.
local function join(list)
  if #list <= CHUNK then return table.concat(list) end
  local pieces = {}
  for i = 1, #list, CHUNK do
    pieces[#pieces + 1] = table.concat(list, '', i, math.min(i + CHUNK - 1, #list))
  end
  return table.concat(pieces)
end

-- A lease record is state:claims:failures:activation:score:before:error, with
-- empty fields at the end left off. State is l (leased) or w (waiting); score
-- is what we last wrote to the timeline; before is the score that the claim
-- found, where it is not the activation, and after a '~' the instant at which
-- a debounced timer was first scheduled.
local RECORD = '^([lw]):(%d+):(%d+):([^:]*):([^:]*):?([^:]*):?(.*)$'

-- current reads a record as readRecord of timers/reply.go does: nil when another
-- process has written the score since, or when it cannot be read. Such a record
-- is void, and the next claim writes a new one. Its field tried, which is not stored, says that
-- a handler has failed or snoozed the timer: a snooze leaves its reason and no failure.
local function current(record, score)
  if not record or not score then return nil end
  local state, claims, failures, activation, wrote, before, err = string.match(record, RECORD)
  if not state or not same(wrote, score) or not number(activation) then return nil end
  if not (counted(claims) and counted(failures)) then return nil end
  local first = ''
  if before ~= '' then
    before, first = string.match(before, '^([^~]*)~?(.*)$')
    if before ~= '' and not number(before) or first ~= '' and not number(first) then return nil end
  end
  if before == '' then before = activation end
  return {
    state = state, claims = tonumber(claims), failures = tonumber(failures),
    activation = activation, before = before, first = first, err = err,
    tried = tonumber(failures) > 0 or err ~= '',
  }
end

local function record(state, r, score)
  local s = state .. ':' .. r.claims .. ':' .. r.failures .. ':' .. r.activation .. ':' .. score
  local before = r.before
  if r.first ~= '' then
    before = before .. '~' .. r.first
  elseif r.err == '' and before == r.activation then
    return s
  end
  if r.err ~= '' then return s .. ':' .. before .. ':' .. r.err end
  return s .. ':' .. before
end

local function running(r, score, now)
  return r ~= nil and r.state == 'l' and number(score) > now
end

-- head is the lowest score, nil when there is none.
local function head(timeline)
  local h = redis.call('ZRANGE', timeline, 0, 0, 'WITHSCORES')[2]
  return h and number(h)
end

-- announce says on the channel named as the hint key that the head is at
-- instant. One outstanding hint at or below it is enough. It comes after all
-- other writes, and a user without rights on the channel loses only the hint.
local function announce(key, instant, now)
  local outstanding = redis.call('GET', key)
  if outstanding and (number(outstanding) or math.huge) <= instant then return end
  redis.call('SET', key, text(instant), 'PX', HINT_LIFE)
  local wait = math.max(0, math.min(math.ceil((instant - now) * 1e6), FARTHEST))
  redis.pcall('PUBLISH', key, 'due ' .. string.format('%.0f', wait) .. ' ' .. text(now))
end

-- mark_once leaves the mark of a timer with Once: the instant at which it is
-- due, the window in µs, and a k if the timer has a key, until the window after that instant
-- is over.
local function mark_once(key, due, window, has_key, now)
  local life = math.max(0, number(due) - now) * 1e3 + tonumber(window) / 1e3
  life = math.max(1, math.min(math.ceil(life), ONCE_LIFE))
  redis.call('SET', key, due .. ' ' .. window .. (has_key and ' k' or ''), 'PX', string.format('%.0f', life))
end

-- undelivered reports whether a timer that is, or was, due at that instant, and has that
-- record or nil, was not delivered since its mark was made. Places of timers with keys have
-- whole µs.
local function undelivered(mark, due, r)
  if r and r.claims > 0 then return false end
  local a, b = number(mark), number(due)
  return mark == due or a and b and string.format('%.0f', a * 1e6) == string.format('%.0f', b * 1e6) or false
end

-- recheck asks holders to verify their lease on id; '' stands for all.
local function recheck(key, id, now)
  redis.pcall('PUBLISH', key, 'check ' .. text(now) .. ' ' .. id)
end

-- recheck_all asks for all of ids, and of many in one hint.
local function recheck_all(key, ids, now)
  if #ids > 10 then ids = {''} end
  for _, id in ipairs(ids) do recheck(key, id, now) end
end

