-- Says when the first timers of several topics are due. It changes nothing.
--
-- KEYS: ...
--   timelines.
-- ARGV: none
-- Returns: one string, "now" and for each timeline " next"; now in seconds, next
--   in µs, 0 for one that cannot be read, -1 for none, and for one that has been due
--   for n µs, -2 - n.

local now = clock()
local out = {text(now)}
for i = 1, #KEYS do
  local first = redis.pcall('ZRANGE', KEYS[i], 0, 0, 'WITHSCORES')
  local next_due = '-1'
  if first.err then
    next_due = '0'
  elseif first[2] then
    local due = number(first[2])
    if due <= now then
      next_due = string.format('%.0f', -2 - math.floor(math.min((now - due) * 1e6, FARTHEST)))
    elseif due < math.huge then
      next_due = until_due(due, now)
    end
  end
  out[i + 1] = ' ' .. next_due
end
return join(out)
