-- Publishes a batch of messages; all of it or, when memory or the queue is full,
-- nothing.
--
-- Parts: shared tally
-- KEYS: pending counts hint published throughput freed ...
--   throughput is pending where nothing is counted, freed where no message has a
--   deduplication key; the deduplication keys of the messages that have one, in order.
-- ARGV: cap drop window remember owners keyed ...
--   cap 0 for none; drop 1: the oldest go, a bounded number of them, 0: FULL; window in ms; remember how
--   long in ms the answer is kept, 0 not at all; owners begins the keys that say
--   which deduplication key a message has, '' for none; keyed has a code for
--   each message: k or -. Then come the ends of the ids, 20 digits, and the
--   envelopes from after the id.
-- Returns: one string, "dropped\n", then for each message "outcome id\n": f it
--   is new, d there is one of its deduplication key; its id is - where it is not
--   known. Or the error FULL.

local DROP = 250 -- messages that go beyond as many as come

local cap, drop, owners = tonumber(ARGV.cap), ARGV.drop == '1', ARGV.owners
local count = #ARGV.keyed
local base = ARGV_NAMED
local kinds = {'list', 'hash', 'string', 'string', false, #KEYS > 6 and 'set'}
for i = 7, #KEYS do kinds[i] = 'string' end
local bad = mistyped(unpack(kinds))
if bad then return bad end
-- This tests the right to the keys of owners, as test_owners does. It is the first write, so a
-- full Redis must refuse it: it would allow all that follow the deletion of test_owners.
if owners ~= '' then redis.call('SET', owners, '', 'XX') end

local answered = redis.call('GET', KEYS.published)
if answered then return answered end

local pending = KEYS.pending
local now, now_ms = instants()
-- The first 12 digits of an id are the instant, as in a UUID of version 7.
local begins = string.format('%06x', math.floor(now_ms / 16777216)) .. string.format('%06x', now_ms % 16777216)

local fresh, marks, out, here, taken, k = {}, {}, {}, {}, {}, 0 -- taken: ids that no longer have their keys
for i = 1, count do
  local tail, key, found = ARGV[base + i], nil, nil
  local id = begins .. tail
  if string.sub(ARGV.keyed, i, i) == 'k' then
    k = k + 1
    key = KEYS[6 + k]
    found = here[key] or redis.call('GET', key)
    local again = found and #found == 32 and string.sub(found, 13) == tail -- an earlier try of this call
    if found and not again and not here[key] and is_free(KEYS.freed, found) then
      taken[#taken + 1], found = found, nil
    end
  end
  if not found then
    fresh[#fresh + 1] = PREFIX .. '{"id":"' .. id .. '",' .. ARGV[base + count + i]
    if key then
      here[key] = id
      marks[#marks + 1] = {key, id}
    end
    out[i] = 'f ' .. id .. '\n'
  elseif #found == 32 and string.sub(found, 13) == tail then
    out[i] = 'f ' .. found .. '\n' -- an earlier try of this call
  else
    out[i] = 'd ' .. (#found == 32 and found or '-') .. '\n'
  end
end

local length = redis.call('LLEN', pending)
local over = cap > 0 and length + #fresh - cap or 0
if over > 0 and #fresh > 0 and (not drop or #fresh > cap) then
  return redis.error_reply('FULL ' .. whole(length))
end
-- The first write but for the test of rights is one that a full Redis refuses.
variadic('LPUSH', pending, fresh, 1, #fresh)
-- A queue that is far over its cap shrinks by DROP at each publish.
local dropped, bytes = 0, 0
while drop and #fresh > 0 and dropped < over and (dropped < #fresh or dropped < #fresh + DROP and bytes < 1048576) do
  local part = redis.call('RPOP', pending, math.min(16, over - dropped, #fresh + DROP - dropped))
  dropped = dropped + #part
  variadic('HDEL', KEYS.counts, part, 1, #part)
  for _, stored in ipairs(part) do
    bytes = bytes + #stored
    free(owners, stored)
  end
end
variadic('SREM', KEYS.freed, taken, 1, #taken)
for _, m in ipairs(marks) do
  redis.call('SET', m[1], m[2], 'PX', ARGV.window)
  if owners ~= '' then redis.call('SET', owners .. m[2], m[1], 'PX', ARGV.window) end
end
local answer = whole(dropped) .. '\n' .. join(out)
if ARGV.remember ~= '0' then redis.call('SET', KEYS.published, answer, 'PX', ARGV.remember) end
if #fresh > 0 and KEYS.throughput ~= pending then tally(KEYS.throughput, now, 's', #fresh) end
if #fresh > 0 then announce(KEYS.hint, now, now) end
return answer
