package wakebell

import (
	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/redisops/timers"
)

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
