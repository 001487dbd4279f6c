-- Makes timers of dead letters again, oldest first, a page a call. Each dead letter
-- is deleted after its timer is written; its attempts start at zero.
--
-- KEYS: timeline payloads leases dead hint exchange
-- ARGV: from upto limit max_bytes text prefix older newer overwrite delay call
--   as of walk in letters.lua; upto '' is the newest one there is now;
--   overwrite 1 to write over live timers too; delay in µs from now; call the
--   number of the call: an equal one is answered again.
-- Returns: where to continue, '' at the end, then upto, then for each dead letter its
--   stream id, the timer's id and the outcome: d redriven, o redriven over a
--   live timer, l skipped for a live one, b skipped for it has no id or payload.

local bad = mistyped('zset', 'hash', 'hash', 'stream', 'string', 'string')
if bad then return bad end
local before = answered(KEYS[6], ARGV[11])
if before then return before end

local timeline, payloads, leases, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local upto = ARGV[2]
if upto == '' then upto = newest(dead) end
local now = clock()
local known = head(timeline) or math.huge
local lowest = math.huge
local made = false
local out = {'', upto}

local function redrive(entry, id, payload)
  local score = redis.call('ZSCORE', timeline, id)
  local live = score and redis.call('HEXISTS', payloads, id) == 1
  if live and ARGV[9] ~= '1' then return 'l' end
  local due = now + tonumber(ARGV[10]) / 1e6
  -- The score of a lease is its token: the new one must be another.
  if score and due == number(score) then due = due + 1e-6 end
  redis.call('HSET', payloads, id, payload)
  redis.call('ZADD', timeline, text(due), id)
  redis.call('HDEL', leases, id)
  redis.call('XDEL', dead, entry)
  lowest, made = math.min(lowest, due), true
  return live and 'o' or 'd'
end

local match = {text = ARGV[5], prefix = ARGV[6], older = tonumber(ARGV[7]), newer = tonumber(ARGV[8])}
out[1] = walk(dead, ARGV[1], upto, tonumber(ARGV[3]), tonumber(ARGV[4]), match, function(entry, values)
  local id, payload = field(values, 'id'), field(values, 'payload')
  local outcome = 'b'
  if payload and id and #id > 0 and #id <= 512 then outcome = redrive(entry, id, payload) end
  out[#out + 1], out[#out + 2], out[#out + 3] = entry, id or '', outcome
end)
if made then remember(KEYS[6], ARGV[11], out) end
if lowest < known then announce(KEYS[5], lowest, now) end
return out
