-- Adds counts that were taken out of another topic, once.
--
-- Parts: fence tally
-- KEYS: counts arrived
-- ARGV: token keep ...
--   token: of the batch; keep: the ms for which it is remembered; then for each count its
--   field and its value.
-- Returns: how many counts were added, as a text.

local bad = mistyped('hash', 'hash')
if bad then return bad end
if redis.call('HEXISTS', KEYS.arrived, ARGV.token) == 1 then return '0' end

local added = 0
for i = ARGV_NAMED + 1, #ARGV, 2 do
  if string.match(ARGV[i], '^d?%d+q$') then
    blend(KEYS.counts, ARGV[i], ARGV[i + 1])
  elseif string.match(ARGV[i], '^d?%d+m$') then
    raise(KEYS.counts, ARGV[i], ARGV[i + 1])
  else
    redis.pcall('HINCRBY', KEYS.counts, ARGV[i], ARGV[i + 1])
  end
  added = added + 1
end
redis.call('EXPIRE', KEYS.counts, '7776000')
redis.call('HSET', KEYS.arrived, ARGV.token, '1')
redis.call('PEXPIRE', KEYS.arrived, ARGV.keep)
return string.format('%.0f', added)
