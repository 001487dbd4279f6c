package wakebell

import (
	"errors"
	"time"

	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/redisops/timers"
)

// RateLimit bounds how many timers of the topic, or messages of the queue, all nodes
// together start: n in each
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
func RateLimit(n int, per time.Duration, burst int) TuningOption {
	return tuningOption(func(s *settings) error {
		return errors.Join(tuned(tuning.RateLimit, n)(s), tuned(tuning.RatePer, per)(s), tuned(tuning.RateBurst, burst)(s))
	})
}

// RateLimitByKey bounds how many timers of each key (see Key) all nodes together start: n
// in each period per, by the clock of Redis, and up to burst at once after a pause. In
// any span of time they start at most burst + n · span / per timers of a key, in the
// order of their instants. What counts is as for RateLimit, and the ranges are the same:
// n is 0 – 1,000,000, where 0 means no limit, the default; per is 1 ms – 30 days; burst
// is 0 – 1,000,000, where 0 means n. Timers without a key are not limited.
//
// A due timer whose key has no token waits without costing an exchange until the next
// token of its key. It may start up to 20 ms later than that, so that tokens of several
// keys share an exchange. With PerKey, a timer needs both: a place and a token.
//
// All nodes of a topic should have the same value. Python workers are neither bound nor
// counted. If Redis loses the state of the limit, each key starts with a whole burst.
func RateLimitByKey(n int, per time.Duration, burst int) TopicTuningOption {
	return topicTuningOption(func(s *settings) error {
		return errors.Join(tuned(tuning.KeyRateLimit, n)(s), tuned(tuning.KeyRatePer, per)(s), tuned(tuning.KeyRateBurst, burst)(s))
	})
}

// MaxInFlight bounds how many timers of the topic, or messages of the queue, all nodes
// together handle at once, 0 – 1,000,000; default 0, which means no maximum. MaxConcurrent bounds those of one
// node. A timer counts from its claim until it is settled, or until its lease expires:
// if a node crashes, its timers count for up to LeaseTTL more. With MaxInFlight a node
// claims no more timers than it has handlers free.
//
// Nodes that have no maximum, and Python workers, are neither bound by it nor counted.
// A queue with AtMostOnce cannot have it: its leases do not expire, so a crashed node
// would keep its places. After it is set or raised from 0 at run time, a lease that was claimed before counts
// from its next heartbeat.
func MaxInFlight(n int) TuningOption {
	return tuned(tuning.MaxInFlight, n)
}

// Key gives the timer a key, 1 – 512 bytes of any value, by which handlers with PerKey
// order timers and bound how many run at once. Handlers without PerKey ignore it. A
// timer that is scheduled again without Key keeps the key that it has.
func Key(key string) ScheduleOption {
	return func(d *Draft) error {
		d.key = key
		return within("Key", len(key), 1, timers.MaxKey)
	}
}

// PerKey bounds how many timers of a key (see Key) run at once, over all nodes, 0 –
// 10,000; default 0, which means no limit. They start in the order of their instants,
// and of their scheduling where instants are equal. With PerKey(1) they run one after
// the other: a timer that runs or waits for its retry keeps the later ones of its key
// waiting, also if its node dies, until its lease has expired and it was delivered
// again. SkipFailed changes that for retries. Timers without a key are not affected.
//
// All nodes of a topic should have the same value. Whether a timer runs is what Redis
// knows: a handler whose lease was lost (see ErrLeaseLost) or cancelled may still be at
// work when the next timer of its key starts. A Python worker is not bound by PerKey.
func PerKey(n int) TopicTuningOption {
	return topicTuningOption(tuned(tuning.PerKey, n))
}

// SkipFailed lets the next timer of a key run while one waits for its retry. That one
// is the next of its key when it is due again. Without PerKey it has no effect.
func SkipFailed() HandlerOption {
	return topicOption(func(s *settings) error {
		s.skipFailed = true
		return nil
	})
}
