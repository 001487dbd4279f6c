-- Counts what a node has done since its last call.
--
-- Parts: tally
-- KEYS: counts exchange
-- ARGV: call handled failed dead started lateness most latenesses
--   call identifies the call: an equal one is not counted again. started are first
--   attempts, lateness is the sum of their delays and most the longest, in µs; latenesses
--   says how many of them were how late, as blend of the part tally has it.
-- Returns: 1, or 0 if the call was counted before.

local bad = mistyped('hash', 'string')
if bad then return bad end
if redis.call('GET', KEYS.exchange) == ARGV.call then return '0' end
redis.call('SET', KEYS.exchange, ARGV.call, 'PX', '120000')
local now = clock()
for kind, n in pairs({h = ARGV.handled, f = ARGV.failed, d = ARGV.dead, n = ARGV.started, l = ARGV.lateness}) do
  if n ~= '0' then tally(KEYS.counts, now, kind, tonumber(n)) end
end
if ARGV.most ~= '0' then raise(KEYS.counts, string.format('%.0fm', math.floor(now / 60)), ARGV.most) end
if ARGV.latenesses ~= '' then blend(KEYS.counts, string.format('%.0fq', math.floor(now / 60)), ARGV.latenesses) end
return '1'
