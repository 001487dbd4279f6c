-- Reads a page of timers in the order of score, then id.
--
-- KEYS: timeline payloads leases keys
-- ARGV: limit before leased examine after_score after_id
--   before: only scores below it; leased: 1 for only those that are leased;
--   examine: the most members to look at; after_score '' starts at the head.
-- Returns: now, then the score and id to go on after (score '' at the end),
--   then for each timer id, score, record and entry of its key ('' for none).

local bad = mistyped('zset', 'hash', 'hash', 'hash')
if bad then return bad end

local timeline, payloads, leases = KEYS.timeline, KEYS.payloads, KEYS.leases
local limit, before, examine = tonumber(ARGV.limit), number(ARGV.before), tonumber(ARGV.examine)
local max_bytes = 1048576
local now = clock()

-- below orders strings by their bytes; Lua's < follows the server's locale.
local function below(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x < y end
  end
  return #a < #b
end

-- after is the rank of the first member beyond the cursor.
local function after(cursor, id)
  local score = redis.call('ZSCORE', timeline, id)
  if score and same(score, cursor) then return redis.call('ZRANK', timeline, id) + 1 end
  local limit_score = number(cursor)
  local low, high = 0, redis.call('ZCARD', timeline)
  while low < high do
    local mid = math.floor((low + high) / 2)
    local m = redis.call('ZRANGE', timeline, mid, mid, 'WITHSCORES')
    local at = number(m[2])
    if at > limit_score or (at == limit_score and below(id, m[1])) then
      high = mid
    else
      low = mid + 1
    end
  end
  return low
end

local out = {text(now), '', ''}

local function put(id, score, rec)
  local n = #out
  out[n + 1], out[n + 2], out[n + 3], out[n + 4] = id, score, rec, ''
end

-- with_keys returns what was put, with the entries of the keys.
local function with_keys()
  local ids = {}
  for i = 4, #out, 4 do ids[#ids + 1] = out[i] end
  if #ids == 0 or redis.call('EXISTS', KEYS.keys) == 0 then return out end
  local entries = collect('HMGET', KEYS.keys, ids, 1, #ids)
  for i = 1, #ids do out[4 * i + 3] = entries[i] or '' end
  return out
end

-- few lists the leased timers of which there are few records: those are looked
-- at, not the timeline. The server says in which order they are.
local function few(start)
  local held = redis.call('HGETALL', leases)
  local ids, records, ranks, at = {}, {}, {}, {}
  for i = 1, #held, 2 do ids[#ids + 1], records[#records + 1] = held[i], held[i + 1] end
  local scores = collect('ZMSCORE', timeline, ids, 1, #ids)
  for i, id in ipairs(ids) do
    local score = scores[i]
    if score and number(score) < before and running(current(records[i], score), score, now) and
      redis.call('HEXISTS', payloads, id) == 1 then
      local rank = redis.call('ZRANK', timeline, id)
      if rank >= start then ranks[#ranks + 1], at[rank] = rank, i end
    end
  end
  table.sort(ranks)
  for n = 1, math.min(limit, #ranks) do
    local i = at[ranks[n]]
    put(ids[i], scores[i], records[i])
    if n == limit and n < #ranks then out[2], out[3] = scores[i], ids[i] end
  end
  return with_keys()
end

local only_leased = ARGV.leased == '1'
local start = 0
if ARGV.after_score ~= '' then start = after(ARGV.after_score, ARGV.after_id) end
if not only_leased then
  examine = math.min(examine, limit)
elseif redis.call('HLEN', leases) <= examine then
  return few(start)
else
  -- What is due is not leased.
  start = math.max(start, redis.call('ZCOUNT', timeline, '-inf', text(now)))
end
local members = redis.call('ZRANGE', timeline, start, start + examine - 1, 'WITHSCORES')
local bytes, listed, ended = 0, 0, #members < 2 * examine

for i = 1, #members, 2 do
  local id, score = members[i], members[i + 1]
  if number(score) >= before then
    ended = true
    break
  end
  local rec = redis.call('HGET', leases, id)
  if not only_leased or running(current(rec, score), score, now) then
    if redis.call('HEXISTS', payloads, id) == 1 then
      put(id, score, rec or '')
      listed = listed + 1
      bytes = bytes + #id
    end
  end
  if listed == limit or bytes > max_bytes or i + 1 == #members then
    out[2], out[3] = score, id
    if i + 1 < #members then ended = false end
    break
  end
end
if ended then out[2], out[3] = '', '' end
return with_keys()
