package timers

import (
	"cmp"
	"fmt"

	"github.com/wakebell/wakebell/messages/exchange"
)

// flowText is the argument of lua/flow.lua.
func flowText(f exchange.Flow) string {
	return fmt.Sprintf("%d %d %d %d", f.RateLimit, f.RatePer.Microseconds(), cmp.Or(f.RateBurst, f.RateLimit), f.MaxInFlight)
}
