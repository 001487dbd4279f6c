-- Says of timers that are to be written where they are, while timers move to other
-- shards, and keeps those that are here from being moved until they are written.
--
-- Parts: fence
-- KEYS: timeline busy taken pins order rates
-- ARGV: life call ...
--   life: for how many µs the timers are kept here, unless unpin.lua is called before;
--   call: a token of the call, without spaces; then for each timer its id and its key, ''
--   for none.
-- Returns: one string, a code for each timer: e it is here, or was a moment ago, or others
--   of its key leave; k it is not, and a timer with its key is here, or was, or took a token of
--   it here that is not back; m it is in the outbox, or its key or a part of it has left, so
--   that its other timers follow; a neither.

local bad = mistyped('zset', 'hash', 'hash', 'hash', 'zset', 'zset')
if bad then return bad end

local now = clock()
local own = text(now + tonumber(ARGV.life) / 1e6) .. ' ' .. ARGV.call .. ' '
local out = {}
local leaving = string.match(redis.call('HGET', KEYS.taken, 'p') or '', '^%d+ (.*)$') -- see take.lua

-- pins_of returns the pins of a timer or key by other calls that have not expired: for each
-- the instant at which it expires and its call. It reads each once: many timers of a call may
-- have the same key. Mine has those that this call has pinned before.
local pins, pinned, mine = {}, {}, {}
local function pins_of(name)
  if not pins[name] then
    local live = {}
    for at, call in string.gmatch(redis.call('HGET', KEYS.pins, name) or '', '(%S+) (%S+) ') do
      if number(at) > now and call == ARGV.call then
        mine[name] = true
      elseif number(at) > now then
        live[#live + 1] = at .. ' ' .. call .. ' '
      end
    end
    pins[name] = table.concat(live)
  end
  return pins[name]
end

local function pin(name)
  if pinned[name] then return end
  pinned[name] = true
  redis.call('HSET', KEYS.pins, name, pins_of(name) .. own)
end
local function kept(name) return pinned[name] or pins_of(name) ~= '' or mine[name] end

-- runs reports whether a timer of a key runs that does not hold it: see runner in
-- keys_states.lua of the timers.
local function runs(key)
  local from = 'r' .. string.format('%03d', #key) .. key
  return redis.call('ZRANGEBYLEX', KEYS.order, '[' .. from, '(' .. from .. '\255', 'LIMIT', '0', '1')[1] ~= nil
end

-- limited reports whether a token of a key is not back.
local function limited(key)
  local at = redis.call('ZSCORE', KEYS.rates, key)
  return at and number(at) > now
end

for i = ARGV_NAMED + 1, #ARGV, 2 do
  local id, key = ARGV[i], ARGV[i + 1]
  local code = 'a'
  local left = key ~= '' and (key == leaving or redis.call('HEXISTS', KEYS.taken, 'k' .. key) == 1)
  local stays = key == leaving and (redis.call('ZSCORE', KEYS.timeline, id) or kept('i' .. id))
  if redis.call('HEXISTS', KEYS.taken, 'i' .. id) == 1 or left and not stays then
    code = 'm'
  elseif left or redis.call('ZSCORE', KEYS.timeline, id) or kept('i' .. id) then
    code = 'e'
  elseif key ~= '' and (redis.call('HEXISTS', KEYS.busy, key) == 1 or kept('k' .. key) or runs(key) or limited(key)) then
    code = 'k'
  end
  if code == 'e' or code == 'k' then
    pin('i' .. id)
    if key ~= '' then pin('k' .. key) end
  end
  out[#out + 1] = code
end
local codes = table.concat(out)
if string.find(codes, '[ek]') then
  -- lua/fence.lua looks at it: a call that comes later than its pins is refused.
  local ends = text(now + tonumber(ARGV.life) / 1e6)
  redis.call('HSET', KEYS.pins, 'c' .. ARGV.call, ends)
  -- rest.lua looks at it: l is when the last of all pins expires.
  local last = redis.call('HGET', KEYS.pins, 'l')
  if not last or number(last) < number(ends) then redis.call('HSET', KEYS.pins, 'l', ends) end
  redis.call('HDEL', KEYS.pins, 'r')
  redis.call('PEXPIRE', KEYS.pins, '86400000')
end
return codes
