-- Reads timers with everything that is stored of them, in the order of their ids.
--
-- KEYS: timeline payloads leases keys
-- ARGV: max_payload max_bytes ...
--   max_payload: the bytes above which a payload is not read; max_bytes: about how many
--   bytes of payloads to read; then the ids.
-- Returns: how many ids were read, then for each that has a timer its id, score, record
--   and entry of its key ('' for none), the bytes of its payload, and the payload, '' if
--   it has more than max_payload; as texts.

local bad = mistyped('zset', 'hash', 'hash', 'hash')
if bad then return bad end

local most, room = tonumber(ARGV.max_payload), tonumber(ARGV.max_bytes)
local out, read = {'0'}, 0
for i = ARGV_NAMED + 1, #ARGV do
  local id = ARGV[i]
  local size = redis.call('HSTRLEN', KEYS.payloads, id)
  if read > 0 and size <= most and size > room then break end
  read = read + 1
  local score = redis.call('ZSCORE', KEYS.timeline, id)
  if score and redis.call('HEXISTS', KEYS.payloads, id) == 1 then
    local payload = ''
    if size <= most then payload, room = redis.call('HGET', KEYS.payloads, id), room - size end
    for _, value in ipairs({id, score, redis.call('HGET', KEYS.leases, id) or '', redis.call('HGET', KEYS.keys, id) or '',
      string.format('%.0f', size), payload}) do out[#out + 1] = value end
  end
end
out[1] = string.format('%.0f', read)
return out
