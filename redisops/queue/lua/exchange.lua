-- Settles and extends what is held of a queue, then claims: one exchange.
--
-- Parts: flow_off shared dead
--   flow: limits flow shared dead
-- KEYS: pending processing deadlines tokens counter counts refs ids backrefs completed failed dlq places records gone exchange hint
-- ARGV: sequence ttl want max_bytes max_deliveries dead_cap completed failed owners acks nacks rejects fails releases extends raws ...
--   ttl in ms, 0 for at most once; max_deliveries and dead_cap 0 for none;
--   completed and failed are how many are kept, 0 for no list; owners as of free
--   in shared.lua, for messages that fail permanently; acks to extends count the
--   arguments that follow: the stored messages in that order, their tokens (after a
--   '-' if delivered at most once), the delays of the nacks in ms, the reasons of
--   the rejects; raws counts pairs at the end: the index of a settlement and the
--   payload of its message, if this script would take long to decode it.
-- Returns: one string,
--   "now end next orphans refused dead leases held charge\n"
--     (instants in seconds; next in µs, -1 for none; orphans 0 or 1; held in µs, for how
--     long flow control claims nothing, else 0; charge: when the token of the first lease
--     is back by a rate limit, - without one)
--   refused times "index why\n" (why: lost l)
--   dead times "index entry at claims id_bytes payload_bytes\n" id payload
--     (messages with too many deliveries have index -1; the others no payload)
--   leases times "token claims bytes\n" stored
--   or the error STALE when a later sequence has been run.

local bad = mistyped('list', 'list', 'zset', 'hash', 'string', 'hash', 'hash', 'hash', 'hash',
  'list', 'list', 'list', 'zset', 'hash', 'set', 'string', 'string')
if bad then return bad end
test_owners(ARGV.owners)

local pending, processing, deadlines, tokens, counts = KEYS.pending, KEYS.processing, KEYS.deadlines, KEYS.tokens, KEYS.counts
local now, now_ms = instants()
local sequence, ttl = tonumber(ARGV.sequence), tonumber(ARGV.ttl)
local once = ttl == 0

-- next_due returns when the next message can be claimed, in ms; 0: now.
local function next_due()
  if redis.call('EXISTS', pending) == 1 then return 0 end
  if once then return nil end
  local first = redis.call('ZRANGE', deadlines, 0, 0, 'WITHSCORES')[2]
  local due = first and number(first)
  if not due or due == math.huge then return nil end
  return due <= now_ms and 0 or due
end

-- seconds is a due instant of next_due in seconds.
local function seconds(due) return due and (due == 0 and now or due / 1000) end

local function answer(due, held, finish, refused, why, dead_count, deaths, leased, leases, orphans)
  local wait = '-1'
  if due then wait = due == 0 and '0' or whole(math.max(1, due * 1000 - math.floor(now * 1e6))) end
  return text(now) .. ' ' .. finish .. ' ' .. wait .. ' ' .. orphans .. ' ' .. refused .. ' ' .. dead_count .. ' ' ..
    leased .. ' ' .. held .. ' ' .. (flow and flow.charge or '-') .. '\n' .. why .. deaths .. leases
end

-- replay returns the answer of the last exchange of the stream again, without the
-- leases that are no longer held. It returns nil if the stored answer is unreadable.
local function replay()
  local saved = redis.call('GET', KEYS.exchange)
  local _, at, finish, refused, dead_count, why_size, dead_size, charge =
    string.find(saved, '^%d+ (%S+) (%d+) (%d+) (%d+) (%d+) (%S+)\n')
  if not at then return nil end
  local why = string.sub(saved, at + 1, at + why_size)
  at = at + why_size
  local deaths = string.sub(saved, at + 1, at + dead_size)
  local pos, stored, lines, mine = at + dead_size + 1, {}, {}, {}
  while pos <= #saved do
    local _, stop, token, size = string.find(saved, '^(%S+) %d+ (%d+)\n', pos)
    if not stop then return nil end
    stored[#stored + 1] = string.sub(saved, stop + 1, stop + size)
    lines[#lines + 1], mine[#mine + 1] = string.sub(saved, pos, stop + size), token
    pos = stop + size + 1
  end
  local held, kept = collect('HMGET', tokens, stored, 1, #stored), {}
  for i, token in ipairs(mine) do
    if unfenced(token) or held[i] == token then kept[#kept + 1] = lines[i] end
  end
  if flow and charge ~= '-' then flow.charge = charge end
  local due = next_due()
  return answer(due, flow and flow.held(now, seconds(due)) or '0', finish, refused, why, dead_count, deaths, #kept, join(kept), '0')
end

local last = integer(string.match(redis.call('GETRANGE', KEYS.exchange, 0, 20), '^%d+'))
local again = last == sequence and replay()
if again then return again end
if last and last > sequence then
  return redis.error_reply('STALE ' .. whole(last))
end

-- The first write is one that Redis allows when its memory is full: then it
-- allows the others too.
redis.call('HDEL', tokens, '')

local want, max_bytes, max_deliveries = tonumber(ARGV.want), tonumber(ARGV.max_bytes), tonumber(ARGV.max_deliveries)
local dead_cap, completed_cap, failed_cap = tonumber(ARGV.dead_cap), tonumber(ARGV.completed), tonumber(ARGV.failed)
local acks, nacks, rejects = tonumber(ARGV.acks), tonumber(ARGV.nacks), tonumber(ARGV.rejects)
local fails, releases, extends = tonumber(ARGV.fails), tonumber(ARGV.releases), tonumber(ARGV.extends)
local base = ARGV_NAMED
local total = acks + nacks + rejects + fails + releases + extends
local payloads = {} -- of settlements, by their index
for i = base + 2 * total + nacks + rejects + 1, base + 2 * total + nacks + rejects + 2 * tonumber(ARGV.raws), 2 do
  payloads[tonumber(ARGV[i])] = ARGV[i + 1]
end
local finish_ms = now_ms + ttl

local done = {}              -- stored messages that leave the queue
local waiting = {}           -- deadline, stored, …
local refused, refusals = 0, {}
local dead_count, deaths = 0, {}

local function keep(list, cap, index, stored)
  if cap > 0 then
    redis.call('LPUSH', list, payloads[index] or raw(stored))
    redis.call('LTRIM', list, 0, cap - 1)
  end
end

local behind, place -- of dead letters, once there is one to write

-- dead_letter adds a message to the dead letters in the peer's format, with a record
-- beside it. Index is that of the settlement; -1: too many deliveries.
local function dead_letter(index, stored, claims, reason)
  if not behind then behind, place = open(KEYS.dlq, KEYS.places, KEYS.records, math.floor(now * 1e6)) end
  local payload, id, at = payloads[index] or raw(stored), id_of(stored), text(now)
  local entry
  redis.call('LPUSH', KEYS.dlq, payload)
  if behind > 0 then
    behind, entry = behind + 1, redis.sha1hex(payload)
  else
    entry, place = whole(place), place + 1
    redis.call('ZADD', KEYS.places, entry, entry)
    redis.call('HSET', KEYS.records, entry,
      fingerprint(payload) .. ' ' .. at .. ' ' .. claims .. ' ' .. #id .. '\n' .. id .. reason)
  end
  free(ARGV.owners, stored)
  dead_count = dead_count + 1
  local shown = index < 0 and payload or ''
  deaths[dead_count] = index .. ' ' .. entry .. ' ' .. at .. ' ' .. claims .. ' ' .. #id .. ' ' .. #shown .. '\n' .. id .. shown
end

-- trim runs after dead_letter: it removes a bounded number of the oldest dead
-- letters beyond the cap.
local function trim()
  if not behind then return end
  local over = dead_cap > 0 and redis.call('LLEN', KEYS.dlq) - dead_cap or 0
  if over > 0 then redis.call('LTRIM', KEYS.dlq, 0, -1 - math.min(over, 500 + dead_count)) end
  close(KEYS.dlq, KEYS.places, KEYS.records, behind)
end

local held = collect('HMGET', tokens, ARGV, base + 1, base + total)
local settled, mine = {}, {} -- only the first of two verdicts counts; the tokens that were valid

local function holds(i, ends)
  local stored, token = ARGV[base + i], ARGV[base + total + i]
  local good = held[i] == token and not settled[stored]
  if unfenced(token) then -- the place in the list is the fence
    good = not ends or redis.call('LREM', processing, 1, stored) > 0
  elseif good and ends then
    settled[stored], mine[#mine + 1] = true, token
  end
  if good then return stored, token end
  refused = refused + 1
  refusals[refused] = (i - 1) .. ' l\n'
  return nil
end

local function leaves(stored, token)
  if not unfenced(token) then done[#done + 1] = stored end
end

local known -- the head before, where it may be lowered
if nacks + releases > 0 then known = next_due() or math.huge end
for i = 1, acks do
  local stored, token = holds(i, true)
  if stored then
    keep(KEYS.completed, completed_cap, i - 1, stored)
    leaves(stored, token)
  end
end
local i = acks
local fresh = {} -- stored messages with a new token
for n = 1, nacks do
  i = i + 1
  local stored, token = holds(i, true)
  if stored and unfenced(token) then
    keep(KEYS.failed, failed_cap, i - 1, stored) -- no second delivery
  elseif stored then
    fresh[#fresh + 1] = stored
    waiting[#waiting + 1], waiting[#waiting + 2] = whole(now_ms + tonumber(ARGV[base + 2 * total + n])), stored
  end
end
for n = 1, rejects do
  i = i + 1
  local stored, token = holds(i, true)
  if stored then
    dead_letter(i - 1, stored, whole(math.max(1, deliveries(redis.call('HGET', counts, stored)))), ARGV[base + 2 * total + nacks + n])
    leaves(stored, token)
  end
end
for _ = 1, fails do
  i = i + 1
  local stored, token = holds(i, true)
  if stored then
    keep(KEYS.failed, failed_cap, i - 1, stored)
    free(ARGV.owners, stored)
    leaves(stored, token)
  end
end

-- Released messages return to pending in the order of their claims, which is that
-- of their tokens. Among messages that an earlier exchange released they are ordered
-- by id, if ids are in the order of publishing.
local back, released = {}, {}
for n = 1, releases do
  i = i + 1
  local stored, token = holds(i, true)
  if stored then
    released[#released + 1] = n
    back[#back + 1] = {stored, tonumber((string.gsub(token, '-', ''))) or 0}
    leaves(stored, token)
  end
end
table.sort(back, function(a, b) return a[2] > b[2] end)
local returned, ids, newest = {}, {}, ''
for k, b in ipairs(back) do
  local stored = b[1]
  returned[k], ids[stored] = stored, ordered_id(stored)
  local id = ids[stored]
  newest = newest and id and (id > newest and id or newest)
end
local recounted = {}
for k, delivered in ipairs(collect('HMGET', counts, returned, 1, #returned)) do
  local n = deliveries(delivered)
  if n > 1 then recounted[#recounted + 1], recounted[#recounted + 2] = returned[k], whole(n - 1) end
end
local extended = {} -- tokens
for _ = 1, extends do
  i = i + 1
  local stored, token = holds(i, false)
  if stored and not unfenced(token) then
    extended[#extended + 1] = token
    waiting[#waiting + 1], waiting[#waiting + 2] = whole(finish_ms), stored
  end
end

if #returned > 0 and newest then
  for _ = 1, 200 do
    local first = redis.call('LINDEX', pending, -1)
    local id = first and ordered_id(first)
    if not id or id >= newest then break end
    ids[first] = id
    returned[#returned + 1] = redis.call('RPOP', pending)
  end
  table.sort(returned, function(a, b) return ids[a] > ids[b] end)
end
variadic('RPUSH', pending, returned, 1, #returned)
variadic('HDEL', counts, done, 1, #done)
variadic('HSET', counts, recounted, 1, #recounted)

if flow then want = flow.before(want, now, mine, extended, text(finish_ms / 1000), released) end

-- The claim: first the messages whose lease has expired, the oldest deadline first,
-- then the pending messages in their order.
local claimed, old, count = {}, {}, {} -- old: from processing, in front of what is from pending
local examined, poisoned, bytes, full = 0, 0, 0, false

local function consider(stored, delivered)
  if full or #claimed >= want or (examined > 0 and bytes + #stored > max_bytes) then
    full = true
    return false
  end
  examined, bytes = examined + 1, bytes + #stored
  local n = deliveries(delivered)
  if max_deliveries > 0 and not once and n >= max_deliveries then
    dead_letter(-1, stored, whole(n), 'too many deliveries')
    poisoned = poisoned + 1
    full = full or poisoned >= 100
    return true, false
  end
  claimed[#claimed + 1], count[#count + 1] = stored, n + 1
  return true, true
end

-- steps reads in growing steps, so that large payloads are not read needlessly.
local function steps(read, took)
  local step, at = 1, 0
  while not full and #claimed < want do
    local part = read(at, math.min(step, want - #claimed))
    if #part == 0 then return end
    local delivered = once and {} or redis.call('HMGET', counts, unpack(part))
    for k, stored in ipairs(part) do
      local going, leased = consider(stored, delivered[k])
      if not going then return end
      took(stored, leased)
    end
    at, step = at + #part, math.min(4 * step, 64)
  end
end

local expired, dead = {}, {} -- dead: of the expired
variadic('ZREM', deadlines, done, 1, #done)
variadic('HDEL', tokens, done, 1, #done)
variadic('ZADD', deadlines, waiting, 1, #waiting)
if want > 0 and not once then
  steps(function(at, n)
    return redis.call('ZRANGEBYSCORE', deadlines, '-inf', whole(now_ms), 'LIMIT', at, n)
  end, function(stored, leased)
    expired[#expired + 1] = stored
    if not leased then dead[#dead + 1] = stored end
  end)
end
local arrived, gave_up, taken = {}, {}, 0
if want > 0 then
  local here = {}
  steps(function(at, n)
    local part, turned = redis.call('LRANGE', pending, -at - n, -at - 1), {}
    for k = #part, 1, -1 do turned[#turned + 1] = part[k] end
    return turned
  end, function(stored, leased)
    taken = taken + 1
    if not leased then
      gave_up[#gave_up + 1] = stored
      return
    end
    -- Two equal messages without an envelope cannot be distinguished while both
    -- are held: the second one gets an envelope.
    if not once and string.sub(stored, 1, #PREFIX) ~= PREFIX then
      if here[stored] or redis.call('HEXISTS', tokens, stored) == 1 then
        local id = string.sub(redis.sha1hex(ARGV.sequence .. KEYS.exchange .. text(now) .. #claimed), 1, 32)
        stored = PREFIX .. '{"id":"' .. id .. '","payload_hex":"' ..
          hex_of(stored) .. '"}'
        claimed[#claimed] = stored
      end
      here[stored] = true
    end
    arrived[#arrived + 1] = stored
  end)
end

-- Each claim and each nack has a token of its own, also if a replica has lost the last ones: by the clock.
local token, stamp = 0, '.' .. whole(math.floor(now * 1e6))
if #fresh + #claimed > 0 and not once then token = tokens_after(KEYS.counter, #fresh + #claimed, math.floor(now * 1e6)) end
local given, deadline, counted, leases, leased = {}, {}, {}, {}, {}
for _, stored in ipairs(fresh) do
  token = token + 1
  given[#given + 1], given[#given + 2] = stored, whole(token) .. stamp
end
local finish_text = whole(finish_ms)
for k, stored in ipairs(claimed) do
  token = token + 1
  local t = once and '-' .. whole(math.floor(now * 1e6) + k) or whole(token) .. stamp
  given[#given + 1], given[#given + 2] = stored, t
  counted[#counted + 1], counted[#counted + 2] = stored, count[k]
  deadline[#deadline + 1], deadline[#deadline + 2] = finish_text, stored
  leased[k] = t
  leases[k] = t .. ' ' .. count[k] .. ' ' .. #stored .. '\n' .. stored
end
if #expired > 0 then
  for _, t in ipairs(collect('HMGET', tokens, expired, 1, #expired)) do
    if t then mine[#mine + 1] = t end
  end
end
variadic('LPUSH', processing, arrived, 1, #arrived)
if taken > 0 then redis.call('LTRIM', pending, 0, -taken - 1) end
if not once then
  variadic('HSET', tokens, given, 1, #given)
  variadic('HSET', counts, counted, 1, #counted)
  variadic('ZADD', deadlines, deadline, 1, #deadline)
end
variadic('ZREM', deadlines, dead, 1, #dead)
variadic('HDEL', tokens, dead, 1, #dead)
for _, stored in ipairs(dead) do done[#done + 1], gave_up[#gave_up + 1] = stored, stored end
variadic('HDEL', counts, gave_up, 1, #gave_up)
take_out(processing, KEYS.gone, done)
forget_claims(KEYS.refs, KEYS.ids, KEYS.backrefs, mine)
trim()

local due = next_due()
local orphans = '0'
if due ~= 0 then
  redis.call('DEL', KEYS.hint) -- the next publish must hint again
  if #claimed == 0 and (changed(KEYS.dlq, KEYS.places, KEYS.records) or redis.call('HLEN', tokens) > redis.call('ZCARD', deadlines)) then orphans = '1' end
end
local why, died, body = join(refusals), join(deaths), join(leases)
local finish = text(finish_ms / 1000)
local withheld = flow and flow.after(now, seconds(due), finish, leased) or '0'
redis.call('SET', KEYS.exchange, ARGV.sequence .. ' ' .. finish .. ' ' .. refused .. ' ' .. dead_count .. ' ' .. #why .. ' ' ..
  #died .. ' ' .. (flow and flow.charge or '-') .. '\n' .. why .. died .. body, 'PX', '120000')
if known and due and due < known then announce(KEYS.hint, seconds(due), now) end
return answer(due, withheld, finish, refused, why, dead_count, died, #claimed, body, orphans)
