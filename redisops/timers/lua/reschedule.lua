-- Gives a timer a new instant. It is a new timer with the payload of the old
-- one: a handler that runs is superseded, and attempts are counted anew.
--
-- Parts: keys keys_states keys_order keys_written fence
-- KEYS: timeline payloads leases hint once keys order busy
-- ARGV: id instant
--   instant: seconds since 1970, or a delay in µs from now after a '+'.
-- Returns: one string, "outcome due found", empty when the timer is absent;
--   outcome is m moved or s superseded, the others as of schedule.lua.

local bad = mistyped('zset', 'hash', 'hash', 'string', 'string', 'hash', 'zset', 'hash')
if bad then return bad end

local timeline, payloads, leases = KEYS.timeline, KEYS.payloads, KEYS.leases
local id, at = ARGV.id, ARGV.instant
local score = redis.call('ZSCORE', timeline, id)
if not score or redis.call('HEXISTS', payloads, id) == 0 then return '' end

local now = clock()
local due
if string.sub(at, 1, 1) == '+' then
  due = now + tonumber(string.sub(at, 2)) / 1e6
else
  due = tonumber(at)
end
local r = current(redis.call('HGET', leases, id), score)
-- The score of a lease is its token: the new one must be another.
if r and r.state == 'l' and due == number(score) then due = due + 1e-6 end
local due_text = text(due)
local known = head(timeline)
local mark, window = string.match(redis.call('GET', KEYS.once) or '', '^(%S+) (%d+)')

redis.call('ZADD', timeline, due_text, id)
redis.call('HDEL', leases, id)
local entry = redis.call('HGET', KEYS.keys, id)
local found = keyed.due_of(score, r, entry, now)
if keyed.place_of(entry) then
  keyed.open(KEYS.keys, KEYS.order, KEYS.busy, timeline, leases)
  if keyed.schedule({{id = id, instant = due, entry = entry, score = score}}, text(now)) then due = math.min(due, now) end
end
-- What was not yet delivered stays to be delivered once.
if mark and undelivered(mark, found, r) then mark_once(KEYS.once, due_text, window, keyed.place_of(entry), now) end
if due < known then announce(KEYS.hint, due, now) end
if not running(r, score, now) then return 'm ' .. due_text .. ' ' .. found end
recheck(KEYS.hint, id, now)
return 's ' .. due_text .. ' ' .. found
