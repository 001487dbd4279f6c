-- Says of timers that are to be written where they are, while timers move to other
-- shards, and keeps those that are here from being moved until they are written.
--
-- KEYS: timeline busy taken pins
-- ARGV: life ...
--   life: for how many µs the timers are kept here; then for each timer its id and its
--   key, '' for none.
-- Returns: one string, a code for each timer: e it is here, or a timer with its key, or
--   one of them was a moment ago; m it is in the outbox, or its key; a neither.

local bad = mistyped('zset', 'hash', 'hash', 'zset')
if bad then return bad end

local now = clock()
local until_text = text(now + tonumber(ARGV.life) / 1e6)
local out, pinned = {}, {}

local function pin(name)
  pinned[#pinned + 1], pinned[#pinned + 2] = until_text, name
end

local function kept(name)
  local at = redis.call('ZSCORE', KEYS.pins, name)
  return at and number(at) > now
end

for i = ARGV_NAMED + 1, #ARGV, 2 do
  local id, key = ARGV[i], ARGV[i + 1]
  local code = 'a'
  if redis.call('HEXISTS', KEYS.taken, 'i' .. id) == 1 or
    key ~= '' and redis.call('HEXISTS', KEYS.taken, 'k' .. key) == 1 then
    code = 'm'
  elseif redis.call('ZSCORE', KEYS.timeline, id) or kept('i' .. id) or
    key ~= '' and (redis.call('HEXISTS', KEYS.busy, key) == 1 or kept('k' .. key)) then
    code = 'e'
    pin('i' .. id)
    if key ~= '' then pin('k' .. key) end
  end
  out[#out + 1] = code
end
variadic('ZADD', KEYS.pins, pinned, 1, #pinned)
if #pinned > 0 then redis.call('PEXPIRE', KEYS.pins, '86400000') end
return table.concat(out)
