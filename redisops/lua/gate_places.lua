-- Says what has become of tickets.
--
-- KEYS: ...
--   the state and the stream of the gate of each ticket.
-- ARGV: ...
--   the tickets.
-- Returns: a letter for each: w waits, h has the turn, g gone.

local bad = mistyped('hash', 'stream')
if bad then return bad end

local letters = {}
for i = 1, #ARGV do
  local state, stream = KEYS[2 * i - 1], KEYS[2 * i]
  local id = ARGV[i] .. '-0'
  if redis.call('HGET', state, 'holder') == ARGV[i] then
    letters[i] = 'h'
  elseif #redis.call('XRANGE', stream, id, id) > 0 then
    letters[i] = 'w'
  else
    letters[i] = 'g'
  end
end
return table.concat(letters)
