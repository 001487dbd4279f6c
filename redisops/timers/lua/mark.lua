-- Mark: put first before exchange.lua, whose last key is the hash of the settings of the
-- topic for all nodes. The mark of these settings changes whenever they do, so a poller that
-- has missed the hint of a change sees it in the answer. If it applies other settings,
-- nothing is claimed: the topic may be paused.
--
-- ARGV: sequence ttl want max_bytes max_claims dead_cap acks nacks rejects releases extends max_payload apart_from ahead known ...
--   known is the mark of the settings that the poller applies, '*' if it does not know it,
--   '' not to read that of the topic; from here on, the mark of the topic: '-' if it has no
--   settings, '?' if they were not read, or could not be.

do
  local known, mark = ARGV.known, '?'
  -- Clients of earlier versions write no mark, but the instant of a pause.
  local found = known ~= '' and redis.pcall('HMGET', KEYS[#KEYS], 'mark', 'paused') or {err = 'not read'}
  if not found.err then
    mark = (found[1] or found[2]) and redis.sha1hex((found[1] or '') .. '/' .. (found[2] or '')) or '-'
    if known ~= '*' and mark ~= known then ARGV.want = '0' end
  end
  ARGV.known = mark
end

