-- Flow control: put before exchange.lua for topics that have it, in place of flow_off.lua,
-- after the kinds of flow control. exchange.lua calls it at three places, and nowhere else;
-- replay.lua calls held.
--
-- Gives: flow

local flow = {}

-- before is called between the settlements and the claim. x has: want, how many timers
-- the exchange may claim; now; finish, the expiry of its leases as a text; base, after
-- which ARGV has total ids and as many tokens, of which the last releases + extends are
-- releases, then extensions; all, that all of them were valid; otherwise valid has the
-- numbers of those that were: a timer may have a verdict that counts beside one that does
-- not. It returns how many timers may be claimed.
function flow.before(x)
  return limits.before(x)
end

-- admits reports whether a due timer with that score, and with that lease record or
-- nil, may be claimed. The hook of a timer that may not removes it from the due ones:
-- otherwise every claim would find it again.
function flow.admits(id, score, r)
  return true
end

-- after is called once all is written, with the head h of the timeline or nil, and
-- with what was claimed: each id after its length. It returns for how many µs nothing
-- can be claimed, as a text; '0': no bound. Then flow.charges has when the tokens of the
-- leases are back: of the first one by the limit of the topic, and after a ',' of each by
-- that of its key; 0: it took none. It is nil if no limit has tokens. flow.key_runs is nil unless
-- some of the leases are of key runs: see due_keys_after.lua.
function flow.after(now, h, finish, claimed)
  local at = limits.after(now, h, finish, claimed)
  if limits.charge or flow.key_charges then flow.charges = (limits.charge or '0') .. (flow.key_charges or '') end
  return until_due(at, now)
end

-- held returns the same as after, for an answer that is repeated. It writes nothing.
function flow.held(now, h)
  return until_due(limits.held(now, h), now)
end
