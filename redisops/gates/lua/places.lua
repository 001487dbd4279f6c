-- Returns the state of tickets.
--
-- KEYS: ...
--   the state and the stream of the gate of each ticket.
-- ARGV: ...
--   the tickets.
-- Returns: a code for each: w waits, h has the turn, g gone, also where a key
--   of its gate is of another type, which says nothing of the others.

local function is(key, kind)
  local found = redis.call('TYPE', key).ok
  return found == kind or found == 'none'
end

local letters = {}
for i = 1, #ARGV do
  local state, stream = KEYS[2 * i - 1], KEYS[2 * i]
  local id = ARGV[i] .. '-0'
  if not is(state, 'hash') or not is(stream, 'stream') then
    letters[i] = 'g'
  elseif redis.call('HGET', state, 'holder') == ARGV[i] then
    letters[i] = 'h'
  elseif #redis.call('XRANGE', stream, id, id) > 0 then
    letters[i] = 'w'
  else
    letters[i] = 'g'
  end
end
return table.concat(letters)
