-- Writes the progress or the result of a timer, if its lease still has a token.
--
-- KEYS: timeline kept
-- ARGV: id token field value life
--   field: p progress, r result; value: '' removes the result; life: for how many ms the key
--   stays after this write.
-- Returns: 1, or 0 if the timer does not have that lease any more, as a text.

local bad = mistyped('zset', 'hash')
if bad then return bad end

local score = redis.call('ZSCORE', KEYS.timeline, ARGV.id)
if not score or not same(score, ARGV.token) then return '0' end
if ARGV.value == '' then
  redis.call('HDEL', KEYS.kept, 'r', 't')
  return '1'
end
-- The first write must be one that Redis allows when its memory is full: otherwise a success
-- would count as a failure for its result.
if ARGV.field == 'r' then redis.call('HDEL', KEYS.kept, 't') end
redis.call('HSET', KEYS.kept, ARGV.field, text(clock()) .. ' ' .. ARGV.value)
if ARGV.field == 'r' then redis.call('HSET', KEYS.kept, 't', ARGV.token) end
redis.call('PEXPIRE', KEYS.kept, ARGV.life)
return '1'
