-- Pause: put before the scripts that read a pause. One that ends by itself has the field
-- `until`: its instant, and the mark beside which it was written. A client of an earlier
-- version replaces the mark with each change and leaves the field, which means nothing
-- then: the pause lasts until it is resumed, as that client says.
--
-- Gives: ends_of

-- ends_of returns when the pause ends by itself, '' for not, from the fields until and mark.
local function ends_of(ends, mark)
  local at, beside = string.match(ends or '', '^(%S+) (%S+)$')
  return at and beside == mark and number(at) and at or ''
end

