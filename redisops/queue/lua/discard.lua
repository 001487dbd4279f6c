-- Deletes dead letters of a queue, as many of the first ones as are a bounded work.
--
-- Parts: shared dead
-- KEYS: dlq places records freed
-- ARGV: ...
--   of each an entry, a payload, and how many are before it: '' where that is not
--   known.
-- Returns: how many dead letters were examined, how many of these existed,
--   and 1 when the next one may be too far inside the list to find it by its
--   payload, else 0; as texts.

local bad = mistyped('list', 'zset', 'hash', 'set')
if bad then return bad end
local length = redis.call('LLEN', KEYS.dlq)
local behind = open(KEYS.dlq, KEYS.places, KEYS.records, math.floor(clock() * 1e6))
local looked, work, far, indices, ids = 0, 0, '0', {}, {}

for i = 1, #ARGV, 3 do
  local payload = ARGV[i + 1]
  local index, further = index_of(KEYS.dlq, KEYS.places, KEYS.records, behind, length, ARGV[i], payload, ARGV[i + 2])
  if further then
    far = '1'
    break
  end
  if index then
    local distance = math.min(index, length - 1 - index)
    if distance >= FAR and #indices > 0 then break end -- it goes alone
    index = nearer(KEYS.dlq, KEYS.places, KEYS.records, behind, length, index)
    redis.call('LSET', KEYS.dlq, index, MARK)
    ids[#ids + 1] = letter_id(KEYS.records, place_at(KEYS.places, behind, index), payload)
    indices[#indices + 1] = index
    -- It takes 12 ns for each node of the list that is passed, twice, and a node
    -- has 8 kB; a search by payload is a walk over 1,000 letters or more.
    work = work + 5000 + 24 * distance * math.min(1, (#payload + 16) / 8192)
    if #ARGV[i] == 40 then work = work + math.max(50000, 50 * distance) end
    if distance >= FAR then work = math.huge end
  end
  looked = looked + 1
  if work > 2e6 then break end
end
behind = remove(KEYS.dlq, KEYS.places, KEYS.records, behind, length, indices)
free_ids(KEYS.freed, ids)
close(KEYS.dlq, KEYS.places, KEYS.records, behind)
return {whole(looked), whole(#indices), far}
