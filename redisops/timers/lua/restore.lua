-- Gives payloads that have no timer their timers back, a page a call: put after
-- keys_written.lua. The instant of a timer is the score in its lease record, which is valid
-- again then, or else that of its key.
--
-- Parts: keys keys_states keys_order keys_written fence
-- KEYS: timeline payloads leases hint keys order busy
-- ARGV: cursor count at apply
--   at: when timers are due whose instants were lost, in seconds, '' for now; apply: 1, or 0
--   to count them only.
-- Returns: the next cursor ('0' at the end), how many payloads were examined, the bytes
--   read, how many have no timer, and of how many of these the instant is known; as texts.

local bad = mistyped('zset', 'hash', 'hash', 'string', 'hash', 'zset', 'hash')
if bad then return bad end

local timeline, leases = KEYS.timeline, KEYS.leases
local now = clock()
local now_text = text(now)
local unknown = ARGV.at ~= '' and ARGV.at or now_text

-- A payload may be of any size: before Redis 7.4 there is no other way to walk a hash.
local page, step = redis.pcall('HSCAN', KEYS.payloads, ARGV.cursor, 'COUNT', ARGV.count, 'NOVALUES'), 1
if page.err then page, step = redis.call('HSCAN', KEYS.payloads, ARGV.cursor, 'COUNT', ARGV.count), 2 end

local all, bytes, seen = {}, 0, {}
for i = 1, #page[2], step do
  if step == 2 then bytes = bytes + #page[2][i + 1] end
  if not seen[page[2][i]] then all[#all + 1], seen[page[2][i]] = page[2][i], true end
end
local scores, ids = collect('ZMSCORE', timeline, all, 1, #all), {}
for i, id in ipairs(all) do
  if not scores[i] then ids[#ids + 1] = id end
end

local stored = collect('HMGET', leases, ids, 1, #ids)
local entry = collect('HMGET', KEYS.keys, ids, 1, #ids)
local scored, recorded, dropped, of_keys = {}, {'', SENTINEL}, {}, {}
local known, lowest = 0, math.huge
for i, id in ipairs(ids) do
  local place, key = place_of(entry[i])
  local wrote = stored[i] and string.match(stored[i], '^[lw]:%d+:%d+:[^:]*:([^:]*)')
  local r, score = wrote and current(stored[i], wrote), nil
  if r then
    score = wrote
    if keyed.parked(wrote) then -- it was due, and waited for its key
      score, r.before = r.activation, r.activation
      recorded[#recorded + 1], recorded[#recorded + 2] = id, record('w', r, score)
    end
  else
    score = place and instant_of(place)
    if stored[i] then dropped[#dropped + 1] = id end
  end
  if score then known = known + 1 end
  score = score or unknown
  scored[2 * i - 1], scored[2 * i] = score, id
  lowest = math.min(lowest, number(score))
  if place then
    -- That it was parked: its key has no more free places than before.
    of_keys[#of_keys + 1] = {id = id, key = key, instant = number(instant_of(place)), entry = entry[i], score = PARKED}
  end
end

if ARGV.apply == '1' and #ids > 0 then
  local first = head(timeline) or math.huge
  variadic('ZADD', timeline, scored, 1, #scored)
  variadic('HDEL', leases, dropped, 1, #dropped)
  if #recorded > 2 then variadic('HSET', leases, recorded, 1, #recorded) end
  if #of_keys > 0 then
    table.sort(of_keys, function(a, b) return a.entry .. a.id < b.entry .. b.id end)
    keyed.open(KEYS.keys, KEYS.order, KEYS.busy, timeline, leases)
    if keyed.schedule(of_keys, now_text) then lowest = math.min(lowest, now) end
  end
  if lowest < first then announce(KEYS.hint, lowest, now) end
end

local function whole(n) return string.format('%.0f', n) end

return {page[1], whole(#all), whole(bytes), whole(#ids), whole(known)}
