
-- Fence: put before a script that writes to topics. Each of its calls was routed with the
-- layout of a topic, and is refused if the topic has another one by then. The last of ARGV
-- has a code for each guard, and is '' for a call without. As many of the last of KEYS, and
-- of ARGV before it, belong to them: for l the layout of a physical topic, and the identity
-- of the one with which the call was routed, '' for a topic that was never divided; for p
-- the pins of a physical topic, and the call whose pins must not have expired.
do
  local function pop(list) -- table.remove of some Lua counts what was set to nil
    local n = #list
    local last = list[n]
    list[n] = nil
    return last
  end
  local codes = pop(ARGV)
  for i = #codes, 1, -1 do
    local key, want, found = pop(KEYS), pop(ARGV), nil
    if string.sub(codes, i, i) == 'l' then
      found = string.match(redis.call('GET', key) or '', '^%S*') == want
    else
      local until_at = redis.call('HGET', key, 'c' .. want)
      found = until_at and number(until_at) > clock()
    end
    if not found then return redis.error_reply('STALELAYOUT ' .. key) end
  end
end
