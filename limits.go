package wakebell

import (
	"errors"
	"time"

	"github.com/wakebell/wakebell/internal/tuning"
)

// RateLimit bounds how many timers of the topic all nodes together start: n in each
// period per, by the clock of Redis, and up to burst at once after a pause. In any
// span of time the handlers of all nodes start at most burst + n · span / per timers.
// Retries count, and so does a delivery that a crash ends. A lease that is released
// before its handler began, and one that a drain interrupts, does not.
//
// n is 0 – 1,000,000, where 0 means no limit, the default; per is 1 ms – 30 days;
// burst is 0 – 1,000,000, where 0 means n. A burst of 1 spreads the timers evenly, but
// reaches the rate only if a node looks for timers as often as that.
//
// The limit is in Redis. Nodes that have none, and Python workers, are neither bound
// by it nor counted, so give it to all nodes of a topic, or set it with Client.Retune.
// A node waits until Redis has a token and does not poll before. If Redis loses the
// state of the limit, the limit starts with a whole burst.
func RateLimit(n int, per time.Duration, burst int) TopicTuningOption {
	return topicTuningOption(func(s *settings) error {
		return errors.Join(tuned(tuning.RateLimit, n)(s), tuned(tuning.RatePer, per)(s), tuned(tuning.RateBurst, burst)(s))
	})
}

// MaxInFlight bounds how many timers of the topic all nodes together handle at once,
// 0 – 1,000,000; default 0, which means no maximum. MaxConcurrent bounds those of one
// node. A timer counts from its claim until it is settled, or until its lease expires:
// if a node crashes, its timers count for up to LeaseTTL more. With MaxInFlight a node
// claims no more timers than it has handlers free.
//
// Nodes that have no maximum, and Python workers, are neither bound by it nor counted.
// After it is set or raised from 0 at run time, a lease that was claimed before counts
// from its next heartbeat.
func MaxInFlight(n int) TopicTuningOption {
	return topicTuningOption(tuned(tuning.MaxInFlight, n))
}
