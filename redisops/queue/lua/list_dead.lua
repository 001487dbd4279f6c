-- Reads a page of the dead letters of a queue, the oldest first.
--
-- Parts: shared dead
-- KEYS: dlq places records
-- ARGV: after limit max_bytes entry
--   after: how many to pass over; entry: only this one, '' for all.
-- Returns: how many to pass over for the next page, '' at the end, then for each
--   its entry, its payload, its record, '' for none: "at claims id_bytes\n" id
--   reason; and how many are before it.

local bad = mistyped('list', 'zset', 'hash')
if bad then return bad end
local after, limit, max_bytes, entry = tonumber(ARGV.after), tonumber(ARGV.limit), tonumber(ARGV.max_bytes), ARGV.entry
local length = redis.call('LLEN', KEYS.dlq)
local behind = unplaced(KEYS.dlq, KEYS.records)
local out, bytes, seen, step = {''}, 0, 0, 1

-- show adds a dead letter to the reply, if it was requested.
local function show(payload, place, at)
  local known = place and redis.call('HGET', KEYS.records, place)
  local print, record = string.match(known or '', '^(%S+) (.*)$')
  if print ~= fingerprint(payload) then place, record = nil, '' end
  if not place and (entry == '' or #entry == 40) then place = redis.sha1hex(payload) end
  if entry == '' or entry == place then
    out[#out + 1], out[#out + 2], out[#out + 3], out[#out + 4] = place, payload, record, whole(at)
  end
end

local rank = entry ~= '' and behind and redis.call('ZREVRANK', KEYS.places, entry)
if rank then
  local index = rank + behind
  local payload = redis.call('LINDEX', KEYS.dlq, index)
  if payload then show(payload, entry, length - 1 - index) end
  return out
end

while seen < 500 and bytes < max_bytes and #out < 1 + 4 * limit do
  local part = redis.call('LRANGE', KEYS.dlq, -after - step, -after - 1)
  local first = length - after - #part -- the index of the first of them
  local places = {}
  if behind and first + #part > behind then
    places = redis.call('ZREVRANGE', KEYS.places, math.max(0, first - behind), first - behind + #part - 1)
  end
  for i = #part, 1, -1 do
    show(part[i], places[i - math.max(0, (behind or 0) - first)], after)
    after, seen, bytes = after + 1, seen + 1, bytes + #part[i]
    if #out >= 1 + 4 * limit then break end
  end
  if #part < step then break end
  step = math.max(1, math.min(128, 2 * step, math.floor(262144 * seen / (bytes + 1))))
end
out[1] = after < length and whole(after) or ''
return out
