-- Notes when the tokens of keys are back that were used in another topic.
--
-- KEYS: rates
-- ARGV: life ...
--   life: the ms for which what is stored stays after the last of the instants; then for each
--   key its name, and when all its tokens are back.
-- Returns: how many were later than what was stored, as a text.

local bad = mistyped('zset')
if bad then return bad end

local now, latest, written = clock(), 0, {}
for i = ARGV_NAMED + 1, #ARGV, 2 do
  local key, at = ARGV[i], ARGV[i + 1]
  local stored = redis.call('ZSCORE', KEYS.rates, key)
  if number(at) > now and not (stored and number(stored) >= number(at)) then
    written[#written + 1], written[#written + 2] = at, key
    latest = math.max(latest, number(at))
  end
end
if #written > 0 then
  variadic('ZADD', KEYS.rates, written, 1, #written)
  local life = math.max(redis.call('PTTL', KEYS.rates), (latest - now) * 1e3 + tonumber(ARGV.life))
  redis.call('PEXPIRE', KEYS.rates, string.format('%.0f', life))
end
return string.format('%.0f', #written / 2)
