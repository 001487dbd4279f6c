package wakebell

import (
	"time"

	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/redisops"
)

// queueHandling is what only a handler of a queue has.
type queueHandling struct {
	name              queue.Keys
	completed, failed int64
	finalErrors       bool
	atMostOnce        bool
	freesKeys         bool
}

// defaultQueueSettings are the defaults of a handler of a queue: the peer's
// visibility timeout and deliveries, an age at which a hung handler ends, and
// looks for what Python publishes.
func defaultQueueSettings() settings {
	s := defaultSettings()
	s.queue = &queueHandling{}
	s.leaseTTL, s.maxAge = 5*time.Minute, time.Hour
	s.maxPolling = time.Second
	s.maxAttempts = 10
	return s
}

// forQueues makes an option of a handler of a queue.
func forQueues(name string, set func(*queueHandling) error) HandlerOption {
	return func(s *settings) error {
		if s.queue == nil {
			return invalid(name, "it is for queues")
		}
		return set(s.queue)
	}
}

// KeepCompleted keeps the payloads of the last n messages that were handled, 0 –
// 1,000,000; default 0. It is for queues, as are KeepFailed, ErrorsAreFinal and
// AtMostOnce.
func KeepCompleted(n int) HandlerOption {
	return forQueues("KeepCompleted", func(q *queueHandling) error {
		q.completed = int64(n)
		return within("KeepCompleted", n, 0, 1_000_000)
	})
}

// KeepFailed keeps the payloads of the last n messages that failed for good
// under ErrorsAreFinal or AtMostOnce, 0 – 1,000,000; default 0.
func KeepFailed(n int) HandlerOption {
	return forQueues("KeepFailed", func(q *queueHandling) error {
		q.failed = int64(n)
		return within("KeepFailed", n, 0, 1_000_000)
	})
}

// ErrorsAreFinal is the rule of redis-message-queue: a message whose handler
// returns an error is not tried again; see KeepFailed. Reject still makes a dead
// letter. A panic, or a node that dies, is no error: the message comes back.
func ErrorsAreFinal() HandlerOption {
	return forQueues("ErrorsAreFinal", func(q *queueHandling) error {
		q.finalErrors = true
		return nil
	})
}

// AtMostOnce gives messages no visibility timeout: none is delivered twice, and
// what a node has when it dies is lost, though it stays in the list of what is in
// processing. Errors and panics are final. What a drain gives back had not been
// given to a handler that finished.
func AtMostOnce() HandlerOption {
	return func(s *settings) error {
		if s.queue == nil {
			return invalid("AtMostOnce", "it is for queues")
		}
		s.queue.atMostOnce, s.queue.finalErrors = true, true
		s.leaseTTL = 24 * time.Hour // nobody takes it away
		return nil
	}
}

func (q *queueHandling) options(set settings, cfg Config) redisops.QueueOptions {
	o := redisops.QueueOptions{
		MaxDeliveries: set.maxAttempts, DeadCap: cfg.DeadLetterCap,
		Completed: q.completed, Failed: q.failed, AtMostOnce: q.atMostOnce, FreeKeys: q.freesKeys,
	}
	return o
}
