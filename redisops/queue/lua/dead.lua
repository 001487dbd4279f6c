-- Queue_dead: put before the scripts of queues that touch dead letters.
--
-- The list dlq is the peer's: payloads, the newest at the head. Beside it are two
-- keys of Wakebell. Places is a sorted set with a member for each dead letter in
-- the same order, so that the rank of a member from its end is the index of its
-- dead letter from the head. Records is a hash: member -> what is known of that
-- dead letter; those of the peer have a member without a record. The peer removes
-- from the tail, which moves no index from the head. It adds at the head: how many
-- are new there is found by the field '' of records, with the length of the list
-- and the fingerprint of its head after our last write.
--
-- Gives: FAR fingerprint unplaced changed open close place_at letter_id index_of nearer MARK remove

-- FAR bounds how many dead letters one removal walks over, at 25 ns each.
local FAR = 50000
-- CATCH_UP bounds how many dead letters of the peer get a place in one call.
local CATCH_UP = 1000
-- FORGET bounds how many records of absent dead letters are removed in one call.
local FORGET = 1000

-- fingerprint distinguishes payloads without reading all of a large one.
local function fingerprint(payload)
  return #payload .. ':' .. string.sub(redis.sha1hex(string.sub(payload, 1, 256) .. string.sub(payload, -256)), 1, 16)
end

-- unplaced is how many dead letters at the head have no place yet. It is nil when the
-- former head is not found among the next 1,000: then no dead letter is
-- known to be the one of a place.
local function unplaced(dlq, records)
  local state = redis.call('HGET', records, '')
  local known, head = string.match(state or '', '^(%d+) (.+)$')
  if not known then return nil end
  local at = math.max(0, redis.call('LLEN', dlq) - tonumber(known))
  local step, seen, bytes = 1, 0, 0
  while seen < 1000 and bytes < 262144 do
    local part = redis.call('LRANGE', dlq, at, at + step - 1)
    if #part == 0 then return nil end
    for _, payload in ipairs(part) do
      if fingerprint(payload) == head then return at end
      at, seen, bytes = at + 1, seen + 1, bytes + #payload
    end
    step = 16
  end
  return nil
end

-- changed reports whether the peer has changed its list since our last write.
local function changed(dlq, places, records)
  local state = redis.call('HGET', records, '')
  local length = redis.call('LLEN', dlq)
  return state and (string.match(state, '^%d+') ~= whole(length) or redis.call('ZCARD', places) > length)
end

-- forget removes the places at the end that have no dead letter any more, with their
-- records, and returns the number of removed records.
local function forget(dlq, places, records, behind)
  local over = redis.call('ZCARD', places) + behind - redis.call('LLEN', dlq)
  if over <= 0 then return 0 end
  local left, n = redis.call('ZRANGE', places, 0, math.min(over, FORGET) - 1), 0
  redis.call('ZREMRANGEBYRANK', places, 0, #left - 1)
  for i = 1, #left, CHUNK do
    n = n + redis.call('HDEL', records, unpack(left, i, math.min(i + CHUNK - 1, #left)))
  end
  return n
end

-- open gives the peer's dead letters a place, and returns how many are left without
-- a place, and the next number for a place. Its first write is one that Redis
-- allows when its memory is full.
local function open(dlq, places, records, micros)
  redis.call('HDEL', records, 'none')
  local behind = unplaced(dlq, records)
  local last = redis.call('ZRANGE', places, -1, -1)[1]
  local highest = integer(last or '0')
  if not behind or not highest then -- another program has written a place
    redis.call('UNLINK', places, records)
    behind, last, highest = 0, nil, 0
  end
  local number = math.max(micros, highest + 1)
  if not last then return 0, number end
  local new = {}
  for i = 1, math.min(behind, CATCH_UP) do
    new[2 * i - 1], new[2 * i] = whole(number), whole(number)
    number = number + 1
  end
  variadic('ZADD', places, new, 1, #new)
  return behind - #new / 2, number
end

-- close removes the places of absent dead letters, and stores the length and the
-- head of the list for the next open.
local function close(dlq, places, records, behind)
  local forgotten = forget(dlq, places, records, behind)
  local length = redis.call('LLEN', dlq)
  if length == 0 then
    redis.call('UNLINK', places, records)
  elseif redis.call('ZCARD', places) == 0 then
    redis.call('HDEL', records, '')
  else
    redis.call('HSET', records, '', whole(length - behind) .. ' ' .. fingerprint(redis.call('LINDEX', dlq, behind)))
  end
  return forgotten
end

-- place_at returns the member of the dead letter at an index; nil if it has none.
local function place_at(places, behind, index)
  if index < behind then return nil end
  return redis.call('ZREVRANGE', places, index - behind, index - behind)[1]
end

-- letter_id returns the id of the message that became the dead letter of a place, nil if
-- it is not known or not one that Wakebell has made.
local function letter_id(records, place, payload)
  local record = place and redis.call('HGET', records, place)
  local print, size, rest = string.match(record or '', '^(%S+) %S+ %S+ (%d+)\n(.*)$')
  if size ~= '32' or print ~= fingerprint(payload) then return nil end
  return string.match(rest, '^' .. string.rep('%x', 12) .. '7' .. string.rep('%x', 19))
end

-- search looks for a dead letter by its payload, up to FAR from either end: for one
-- without a record, or else for its twin. It answers nil when there is none, and
-- then whether there may be one further inside.
local function search(dlq, places, records, behind, length, payload)
  for _, most in ipairs({1000, FAR}) do
    for _, side in ipairs({-1, 1}) do
      local found = redis.call('LPOS', dlq, payload, 'RANK', side, 'COUNT', 16, 'MAXLEN', most)
      for _, index in ipairs(found) do
        local place = place_at(places, behind, index)
        if not place or redis.call('HEXISTS', records, place) == 0 then return index end
      end
      if found[1] then return found[1] end
    end
    if length <= most then return nil, false end
  end
  return nil, length > 2 * FAR
end

-- index_of finds a dead letter from the head, nil when it is not there. Entry is its
-- place, or the hash of its payload; hint, from the tail, is where to look for the
-- latter, '' for anywhere. The second answer is whether it may be further inside
-- the list than was looked.
local function index_of(dlq, places, records, behind, length, entry, payload, hint)
  local index
  local rank = redis.call('ZREVRANK', places, entry)
  if rank then
    index = rank + behind
  elseif entry ~= redis.sha1hex(payload) then
    return nil, false
  elseif hint == '' then
    return search(dlq, places, records, behind, length, payload)
  else
    index = length - 1 - tonumber(hint)
  end
  if redis.call('LINDEX', dlq, index) == payload then return index end
  return nil, false
end

-- nearer is for a dead letter further than FAR from both ends, to which a walk would
-- take too long: one that is nearer is put into its place, and the answer is where
-- that one was. Only the order of the dead letters changes.
local function nearer(dlq, places, records, behind, length, index)
  if math.min(index, length - 1 - index) < FAR then return index end
  local place = place_at(places, behind, index)
  -- Letters without a place are the last ones.
  local other = (place and index < length / 2) and FAR - 1 or length - FAR
  local moved = place_at(places, behind, other)
  redis.call('LSET', dlq, index, redis.call('LINDEX', dlq, other))
  if place and moved then
    local at, from = redis.call('ZSCORE', places, place), redis.call('ZSCORE', places, moved)
    redis.call('ZADD', places, at, moved, from, place)
  elseif place then
    redis.call('HDEL', records, place)
  end
  return other
end

-- MARK stands for a dead letter in the list from when it is found until it is removed,
-- all in one call.
local MARK = '\0wakebell: removed'

-- remove takes what is marked out of the list, with its places and records, and
-- returns how many dead letters then have no place.
local function remove(dlq, places, records, behind, length, indices)
  local members, near, left = {}, 0, behind
  for _, index in ipairs(indices) do
    members[#members + 1] = place_at(places, behind, index)
    if index < length / 2 then near = near + 1 end
    if index < behind then left = left - 1 end
  end
  if near > 0 then redis.call('LREM', dlq, near, MARK) end
  if #indices > near then redis.call('LREM', dlq, near - #indices, MARK) end
  variadic('ZREM', places, members, 1, #members)
  variadic('HDEL', records, members, 1, #members)
  return left
end
