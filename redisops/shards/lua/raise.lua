-- Replaces the layout with which calls may write to a physical topic, if it has not changed
-- since it was read.
--
-- KEYS: layout
-- ARGV: before after
--   before: what was read, '' for none; after: the identity of the layout, a space and the layout.
-- Returns: what is stored then, '' for none.

local bad = mistyped('string')
if bad then return bad end

local stored = redis.call('GET', KEYS.layout) or ''
if stored ~= ARGV.before then return stored end
redis.call('SET', KEYS.layout, ARGV.after)
return ARGV.after
