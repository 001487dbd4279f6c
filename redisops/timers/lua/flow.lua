-- Flow control: put before exchange.lua for topics that have it, in place of flow_off.lua.
-- exchange.lua calls it at three places, and nowhere else.

local flow = {}

-- before is called between the settlements and the claim, with how many timers the
-- exchange may claim. All reports that all settlements and extensions were valid;
-- otherwise settled has the ids of those that were. It returns how many timers flow
-- control lets the exchange claim.
function flow.before(want, now, finish, all, settled)
  return want
end

-- admits reports whether a due timer with that score, and with that lease record or
-- nil, may be claimed. The hook of a timer that may not removes it from the due ones:
-- otherwise every claim would find it again.
function flow.admits(id, score, r)
  return true
end

-- after is called once all is written, with the head h of the timeline or nil, and
-- with what was claimed: each id after its length. It returns for how many µs nothing
-- can be claimed, as a text; '0': no bound.
function flow.after(now, h, claimed)
  return flow.held(now, h)
end

-- held returns the same as after, for an answer that is repeated. It writes nothing.
function flow.held(now, h)
  return '0'
end
