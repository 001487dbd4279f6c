package leasing

import (
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
)

// subscribedJitter keeps thousands of topics from polling at the same time when
// their common subscription is restored.
const subscribedJitter = 100 * time.Millisecond

// Hint looks again: at the first timer, the leases or the override. What the core
// then does depends on what it reads, so a lost or false hint costs only time.
func (c *Core) Hint(now time.Time, h exchange.Hint) {
	switch h.Kind {
	case exchange.HintDue:
		c.pace.handleHint(now, max(h.In, 0), h.Sent)
	case exchange.HintFree:
		c.pace.handleFree(now, h.Sent)
	case exchange.HintSubscribed:
		c.pace.heldUntil = time.Time{} // a hint that ended it may have been missed
		c.pace.pollWithin(now, time.Duration(float64(subscribedJitter)*c.Random()))
		c.readOverride(now)
		if c.Forwards { // a hint of a cancel may have been missed, and forwarded leases have no heartbeat
			c.verifyLeases("")
		}
	case exchange.HintControl:
		c.suspendClaims(now)
	case exchange.HintCheck:
		c.verifyLeases(h.ID)
	case exchange.HintJoined, exchange.HintLeft, exchange.HintHelp:
		c.divisionHint(now, h)
	}
}
