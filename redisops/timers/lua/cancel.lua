-- Cancels timers.
--
-- Parts: cancelled keys keys_states keys_order keys_written fence
-- KEYS: timeline payloads leases hint cancelled keys order busy
--   cancelled is timeline where runs are not marked.
-- ARGV: ...
--   the ids.
-- Returns: one string, a code for each id: a absent, p pending, r running.

local bad = mistyped('zset', 'hash', 'hash', 'string', 'zset', 'hash', 'zset', 'hash')
if bad then return bad end

local timeline, payloads, leases = KEYS.timeline, KEYS.payloads, KEYS.leases
local now = clock()
local count = #ARGV
local scores = collect('ZMSCORE', timeline, ARGV, 1, count)
local records = collect('HMGET', leases, ARGV, 1, count)
local out, seen, held, tokens = {}, {}, {}, {}

for i = 1, count do
  local id, score = ARGV[i], scores[i]
  out[i] = 'a'
  if score and not seen[id] and redis.call('HEXISTS', payloads, id) == 1 then
    out[i] = 'p'
    if running(current(records[i], score), score, now) then
      out[i] = 'r'
      held[#held + 1], tokens[#held + 1] = id, score
    end
  end
  seen[id] = true
end

variadic('ZREM', timeline, ARGV, 1, count)
variadic('HDEL', payloads, ARGV, 1, count)
variadic('HDEL', leases, ARGV, 1, count)
if KEYS.cancelled ~= timeline then mark_runs(KEYS.cancelled, held, tokens, now) end
keyed.open(KEYS.keys, KEYS.order, KEYS.busy, timeline, leases)
if keyed.ended(ARGV, scores, text(now)) then announce(KEYS.hint, now, now) end
recheck_all(KEYS.hint, held, now)
return table.concat(out)
