-- Part of the beat's scripts: the lock of a Python beat, or of Wakebell.
--
-- Gives: take lock barred

-- OURS bounds, in milliseconds, how long Wakebell's lock outlives its nodes.
local OURS = '30000'

-- take takes or extends the lock, unless another holder has it. All Wakebell
-- nodes have the same token.
local function take(key, token)
  local holder = redis.call('GET', key)
  if not holder or holder == token then redis.call('SET', key, token, 'PX', OURS) end
end

-- lock gives the holder, empty for none, and for how many ms it holds it.
local function lock(key)
  local holder = redis.call('GET', key)
  if not holder then return '', '0' end
  return holder, string.format('%d', redis.call('PTTL', key))
end

-- barred reports whether a foreign lock forbids firing. A holder that is
-- known to be dead is ignored, as long as it has not renewed: ignored is its
-- token, a space, and the instant in ms at which its lock ends, or -1.
local function barred(holder, left, token, ignored, now)
  if holder == '' or holder == token then return false end
  local dead, ends = string.match(ignored, '^(.*) (-?%d+)$')
  if dead ~= holder then return true end
  local found = tonumber(left)
  if found >= 0 then found = now * 1000 + found end
  return math.abs(found - tonumber(ends)) > 1000
end
