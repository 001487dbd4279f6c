package exchange

import (
	"cmp"
	"fmt"
	"time"
)

// Flow is the flow control of a source, which holds over all nodes. Without limits there is
// none; a source then runs the exchange as if there were no flow control. Nodes
// may send different values: each exchange is bound by its own.
type Flow struct {
	// RateLimit is how many leases are given in RatePer, over all nodes; 0: no limit.
	// RateBurst is how many are given at once after a pause; 0: RateLimit.
	RateLimit, RateBurst int
	RatePer              time.Duration

	// PerKey is the maximum number of timers of a key that hold it at once, over all
	// nodes; 0: no limit.
	PerKey int

	// KeyRateLimit is how many leases of timers of one key are given in KeyRatePer, over
	// all nodes; 0: no limit. KeyRateBurst is how many are given at once after a pause;
	// 0: KeyRateLimit.
	KeyRateLimit, KeyRateBurst int
	KeyRatePer                 time.Duration

	// FairKeys is how many timers of a key start in a turn: keys take turns if PerKey or
	// KeyRateLimit is set. 0: they do not.
	FairKeys int

	// MaxInFlight is the maximum number of leases over all nodes; 0: no limit.
	MaxInFlight int
}

// Limits returns the flow control without that by the keys of timers.
func (f Flow) Limits() Flow {
	return Flow{RateLimit: f.RateLimit, RateBurst: f.RateBurst, RatePer: f.RatePer, MaxInFlight: f.MaxInFlight}
}

// Words is what scripts read of the rate limit and the maximum of leases.
func (f Flow) Words() string {
	return fmt.Sprintf("%d %d %d %d", f.RateLimit, f.RatePer.Microseconds(), cmp.Or(f.RateBurst, f.RateLimit), f.MaxInFlight)
}

// On reports whether there is any flow control.
func (f Flow) On() bool { return f.RateLimit > 0 || f.MaxInFlight > 0 || f.ByKey() }

// ByKey reports whether there is flow control by the keys of timers.
func (f Flow) ByKey() bool { return f.PerKey > 0 || f.KeyRateLimit > 0 }

// Fair reports whether keys take turns.
func (f Flow) Fair() bool { return f.FairKeys > 0 && f.ByKey() }
