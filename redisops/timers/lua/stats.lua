-- Describes a topic in numbers, at a cost that does not grow with it.
--
-- Parts: keys pause
-- KEYS: timeline leases dead control payloads
-- ARGV: sample
--   sample: the most lease records to read; of more, that many at random.
-- Returns: as texts: now, the timers, those due, the dead letters, the lease
--   records there are and those read, of these the leased and those that wait
--   for their next attempt, the lowest score that is due, since when the topic is
--   paused ('' for none), the timers that wait for their key, the payloads there are
--   ('' if the key has another type, or is that of the timeline), and when the pause
--   ends by itself ('' for not).

local bad = mistyped('zset', 'hash', 'stream', 'hash')
if bad then return bad end

local timeline, leases = KEYS.timeline, KEYS.leases
local now = clock()
local now_text = text(now)
local records, read, leased, retrying = redis.call('HLEN', leases), 0, 0, 0
if redis.call('HEXISTS', leases, '') == 1 then records = records - 1 end

local ids, values = {}, {}
local drawn = redis.call('HRANDFIELD', leases, ARGV.sample, 'WITHVALUES')
for i = 1, #drawn, 2 do
  if drawn[i] ~= '' then
    read = read + 1
    ids[read], values[read] = drawn[i], drawn[i + 1]
  end
end
local scores = collect('ZMSCORE', timeline, ids, 1, read)
for i = 1, read do
  local r = scores[i] and current(values[i], scores[i])
  if r and number(scores[i]) > now and not keyed.parked(scores[i]) then
    if r.state == 'l' then
      leased = leased + 1
    elseif r.claims > 0 then
      retrying = retrying + 1
    end
  end
end

local found = redis.call('HMGET', KEYS.control, 'paused', 'until', 'mark')
local paused, ends = found[1] or '', ends_of(found[2], found[3])
if ends ~= '' and number(ends) <= now then paused = '' end
if paused == '' then ends = '' end

local function count(n) return string.format('%.0f', n) end

local payloads = KEYS.payloads ~= timeline and redis.pcall('HLEN', KEYS.payloads)
local oldest = redis.call('ZRANGEBYSCORE', timeline, '(-inf', now_text, 'WITHSCORES', 'LIMIT', '0', '1')[2]
return {
  now_text, count(redis.call('ZCARD', timeline)), count(redis.call('ZCOUNT', timeline, '-inf', now_text)),
  count(redis.call('XLEN', KEYS.dead)), count(records), count(read), count(leased), count(retrying),
  oldest or '', paused,
  count(redis.call('ZCOUNT', timeline, PARKED, PARKED)), type(payloads) == 'number' and count(payloads) or '', ends,
}
