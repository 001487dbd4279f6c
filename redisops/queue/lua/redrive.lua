-- Publishes a dead letter of a queue again, and deletes it.
--
-- Parts: shared dead tally
-- KEYS: pending dlq places records hint published throughput freed ...
--   throughput is pending where nothing is counted; its deduplication key, if it
--   has one.
-- ARGV: payload entry before tail envelope window owners
--   before is how many dead letters precede it, '' if unknown; tail is
--   the end of the new id and envelope what follows it; window in ms and owners as
--   of publish.lua.
-- Returns: an outcome and an id: r redriven, d there is another message of its
--   deduplication key, a it is not there, f it may be too far inside the list to
--   find it by its payload.

local kinds = {'list', 'list', 'zset', 'hash', 'string', 'string', false, 'set'}
if #KEYS > 8 then kinds[9] = 'string' end
local bad = mistyped(unpack(kinds))
if bad then return bad end
test_owners(ARGV.owners)
local answered = redis.call('GET', KEYS.published)
if answered then return {'r', answered} end -- an earlier try of this call
local now, now_ms = instants()
local id = string.format('%06x', math.floor(now_ms / 16777216)) .. string.format('%06x', now_ms % 16777216) .. ARGV.tail

-- The key that the message had when it died is its own still, and that of a deleted
-- message is free.
local key = KEYS[8 + 1]
local holder = key and redis.call('GET', key)
if holder and not is_free(KEYS.freed, holder) then
  local size, rest = string.match(redis.call('HGET', KEYS.records, ARGV.entry) or '', '^%S+ %S+ %S+ (%d+)\n(.*)$')
  if not size or string.sub(rest, 1, tonumber(size)) ~= holder then return {'d', ''} end
end

local length = redis.call('LLEN', KEYS.dlq)
local behind = open(KEYS.dlq, KEYS.places, KEYS.records, math.floor(now * 1e6))
local index, further = index_of(KEYS.dlq, KEYS.places, KEYS.records, behind, length, ARGV.entry, ARGV.payload, ARGV.before)
if index then
  index = nearer(KEYS.dlq, KEYS.places, KEYS.records, behind, length, index)
  redis.call('LSET', KEYS.dlq, index, MARK)
  behind = remove(KEYS.dlq, KEYS.places, KEYS.records, behind, length, {index})
end
close(KEYS.dlq, KEYS.places, KEYS.records, behind)
if not index then return {further and 'f' or 'a', ''} end

redis.call('LPUSH', KEYS.pending, PREFIX .. '{"id":"' .. id .. '",' .. ARGV.envelope)
if key then
  if holder then redis.call('SREM', KEYS.freed, holder) end
  redis.call('SET', key, id, 'PX', ARGV.window)
  if ARGV.owners ~= '' then redis.call('SET', ARGV.owners .. id, key, 'PX', ARGV.window) end
end
redis.call('SET', KEYS.published, id, 'PX', '60000')
if KEYS.throughput ~= KEYS.pending then tally(KEYS.throughput, now, 's', 1) end
announce(KEYS.hint, now, now)
return {'r', id}
