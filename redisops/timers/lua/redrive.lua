-- Makes timers of dead letters again, oldest first, a page a call. Each dead letter
-- is deleted after its timer is written; its attempts start at zero.
--
-- Parts: letters tally keys keys_states keys_order keys_written fence
-- KEYS: timeline payloads leases dead hint exchange counts keys order busy
-- ARGV: from upto limit max_bytes text prefix older newer overwrite delay call
--   as of walk in letters.lua; upto '' is the newest one there is now;
--   overwrite 1 to write over live timers too; delay in µs from now; call the
--   number of the call: an equal one is answered again. Counts is the timeline
--   where nothing is counted.
-- Returns: where to continue, '' at the end, then upto, then for each dead letter its
--   stream id, the timer's id and the outcome: d redriven, o redriven over a
--   live timer, l skipped for a live one, b skipped for it has no id or payload.

local bad = mistyped('zset', 'hash', 'hash', 'stream', 'string', 'string', false, 'hash', 'zset', 'hash')
if bad then return bad end
local before = answered(KEYS.exchange, ARGV.call)
if before then return before end

local timeline, payloads, leases, dead = KEYS.timeline, KEYS.payloads, KEYS.leases, KEYS.dead
local upto = ARGV.upto
if upto == '' then upto = newest(dead) end
local now = clock()
local known = head(timeline) or math.huge
local lowest = math.huge
local made = 0
local keys_made = {}  -- of timers with keys
local superseded = {} -- ids of timers that were replaced while they were leased
local out = {'', upto}

-- state returns the score of a timer, whether there is one, and whether it is left as it is.
local function state(id)
  local score = redis.call('ZSCORE', timeline, id)
  local live = score and redis.call('HEXISTS', payloads, id) == 1
  return score, live, live and ARGV.overwrite ~= '1'
end

local function has_key(key) return key and #key > 0 and #key <= 512 end

local function redrive(entry, id, payload, key)
  local score, live, stays = state(id)
  if stays then return 'l' end
  local due = now + tonumber(ARGV.delay) / 1e6
  -- The score of a lease is its token: the new one must be another.
  if score and due == number(score) then due = due + 1e-6 end
  if live and running(current(redis.call('HGET', leases, id), score), score, now) then
    superseded[#superseded + 1] = id
  end
  redis.call('HSET', payloads, id, payload)
  redis.call('ZADD', timeline, text(due), id)
  redis.call('HDEL', leases, id)
  redis.call('XDEL', dead, entry)
  if has_key(key) then
    keys_made[#keys_made + 1] = {id = id, key = key, instant = due, entry = redis.call('HGET', KEYS.keys, id), score = score}
  end
  lowest, made = math.min(lowest, due), made + 1
  return live and 'o' or 'd'
end

local found = {} -- dead letters
local match = {text = ARGV.text, prefix = ARGV.prefix, older = tonumber(ARGV.older), newer = tonumber(ARGV.newer)}
out[1] = walk(dead, ARGV.from, upto, tonumber(ARGV.limit), tonumber(ARGV.max_bytes), match, function(entry, values)
  local id = field(values, 'id')
  found[#found + 1] = {
    entry = entry, id = id or '', payload = id and #id > 0 and #id <= 512 and field(values, 'payload'), key = field(values, 'key'),
  }
end)
-- A user without a right to the keys of timers has the leases in their place.
for _, letter in ipairs(KEYS.keys == leases and found or {}) do
  if letter.payload and has_key(letter.key) then
    local _, _, stays = state(letter.id)
    if not stays then return redis.error_reply('NOPERM a dead letter has a key, and the user has no right to the keys of timers') end
  end
end
for _, letter in ipairs(found) do
  local outcome = letter.payload and redrive(letter.entry, letter.id, letter.payload, letter.key) or 'b'
  out[#out + 1], out[#out + 2], out[#out + 3] = letter.entry, letter.id, outcome
end
if #keys_made > 0 then
  keyed.open(KEYS.keys, KEYS.order, KEYS.busy, timeline, leases)
  if keyed.schedule(keys_made, text(now)) then lowest = math.min(lowest, now) end
end
if made > 0 then
  remember(KEYS.exchange, ARGV.call, out)
  if KEYS.counts ~= timeline then tally(KEYS.counts, now, 's', made) end
end
if lowest < known then announce(KEYS.hint, lowest, now) end
-- A holder that has claimed one early does not begin it any more.
recheck_all(KEYS.hint, superseded, now)
return out
