package wakebell

import (
	"errors"
	"math"
	"time"

	"github.com/wakebell/wakebell/actors/poller"
)

// settings are a handler's options with their defaults.
type settings struct {
	maxConcurrent       int
	leaseTTL, maxAge    time.Duration
	polling, maxPolling time.Duration
	retryInitial        time.Duration
	retryMax            time.Duration
	maxAttempts         int
	discardRejected     bool
	retryOnExpiry       bool
	middleware          []Middleware
	target              *poller.Target
	queue               *queueHandling // nil: a topic
}

func defaultSettings() settings {
	return settings{
		maxConcurrent: 5,
		leaseTTL:      30 * time.Second,
		polling:       50 * time.Millisecond,
		maxPolling:    5 * time.Second,
		retryInitial:  time.Second,
		retryMax:      time.Hour,
		maxAttempts:   25,
	}
}

// applyAll applies options with one of their methods, and reports all that are
// wrong.
func applyAll[O any](s *settings, opts []O, apply func(O, *settings) error) error {
	var errs []error
	for i, opt := range opts {
		if any(opt) == nil {
			errs = append(errs, invalid("option", "number %d is nil", i))
			continue
		}
		errs = append(errs, apply(opt, s))
	}
	return errors.Join(errs...)
}

// retune applies options to the settings of a handler that runs.
func (s *settings) retune(opts []TuningOption) error {
	return errors.Join(applyAll(s, opts, TuningOption.tune), s.validate())
}

// validate checks what depends on more than one option.
func (s settings) validate() error {
	if s.maxPolling < s.polling {
		return invalid("MaxPollingInterval", "%v is below PollingInterval, %v", s.maxPolling, s.polling)
	}
	return nil
}

// tunable are the settings that may change while a topic is handled.
func (s settings) tunable() poller.Settings {
	return poller.Settings{
		MaxConcurrent:      s.maxConcurrent,
		LeaseTTL:           s.leaseTTL,
		MaxLeaseAge:        s.maxAge,
		PollingInterval:    s.polling,
		MaxPollingInterval: s.maxPolling,
		Retry: poller.Retry{
			Initial:     s.retryInitial,
			Max:         s.retryMax,
			MaxFailures: s.maxAttempts,
		},
	}
}

// HandlerOption configures the handler of a topic: see Handle and Forward. A wrong
// value makes New fail with ErrInvalid.
type HandlerOption interface {
	applyTopic(s *settings) error
}

// QueueHandlerOption configures the handler of a queue: see HandleQueue and
// ForwardQueue. A wrong value makes New fail with ErrInvalid.
type QueueHandlerOption interface {
	applyQueue(s *settings) error
}

// CommonOption configures the handler of a topic or of a queue.
type CommonOption interface {
	HandlerOption
	QueueHandlerOption
}

// TuningOption configures the handler of a topic or of a queue, and can be changed
// while the handler runs: see System.RetuneLocal.
type TuningOption interface {
	CommonOption
	tune(s *settings) error
}

type (
	topicOption  func(*settings) error
	queueOption  func(*settings) error
	commonOption func(*settings) error
	tuningOption func(*settings) error
)

func (o topicOption) applyTopic(s *settings) error  { return o(s) }
func (o queueOption) applyQueue(s *settings) error  { return o(s) }
func (o commonOption) applyTopic(s *settings) error { return o(s) }
func (o commonOption) applyQueue(s *settings) error { return o(s) }
func (o tuningOption) applyTopic(s *settings) error { return o(s) }
func (o tuningOption) applyQueue(s *settings) error { return o(s) }
func (o tuningOption) tune(s *settings) error       { return o(s) }

// MaxConcurrent is how many timers of the topic this node handles at once,
// 1 – 10,000; default 5.
func MaxConcurrent(n int) TuningOption {
	return tuningOption(func(s *settings) error {
		s.maxConcurrent = n
		return within("MaxConcurrent", n, 1, 10_000)
	})
}

// LeaseTTL is how long a crashed node keeps its timers from the others,
// 100 ms – 24 h; default 30 s. While a handler runs, its lease is extended at
// a third of it.
func LeaseTTL(d time.Duration) TuningOption {
	return tuningOption(func(s *settings) error {
		s.leaseTTL = d
		return within("LeaseTTL", d, 100*time.Millisecond, 24*time.Hour)
	})
}

// MaxLeaseAge ends a handler that runs longer: its context ends with
// ErrLeaseTooOld, its slot is freed, and the timer is retried as after an
// error. 0 – 30 days; default 0, which is off.
func MaxLeaseAge(d time.Duration) TuningOption {
	return tuningOption(func(s *settings) error {
		s.maxAge = d
		return within("MaxLeaseAge", d, 0, 30*24*time.Hour)
	})
}

// PollingInterval is the first delay of the idle backoff, 1 ms – 1 h; default
// 50 ms. It matters for timers that Python peers schedule: they send no hints.
func PollingInterval(d time.Duration) TuningOption {
	return tuningOption(func(s *settings) error {
		s.polling = d
		return within("PollingInterval", d, time.Millisecond, time.Hour)
	})
}

// MaxPollingInterval caps the idle backoff, 1 ms – 1 h; default 5 s. After
// ±50 % of jitter a look may come up to 1.5 × as late.
func MaxPollingInterval(d time.Duration) TuningOption {
	return tuningOption(func(s *settings) error {
		s.maxPolling = d
		return within("MaxPollingInterval", d, time.Millisecond, time.Hour)
	})
}

// RetryBackoff is the delay after the first failure, and the cap up to which
// it doubles with each further one; each varies by ±20 %. 1 ms – 30 days;
// default 1 s and 1 h.
func RetryBackoff(initial, limit time.Duration) TuningOption {
	return tuningOption(func(s *settings) error {
		s.retryInitial, s.retryMax = initial, limit
		const most = 30 * 24 * time.Hour
		if err := within("RetryBackoff initial", initial, time.Millisecond, most); err != nil {
			return err
		}
		return within("RetryBackoff limit", limit, initial, most)
	})
}

// MaxAttempts is the failure at which a timer becomes a dead letter,
// 1 – 1,000,000; default 25. Deliveries that end without a verdict (crashes)
// have a cap of their own, 10 above it.
func MaxAttempts(n int) TuningOption {
	return tuningOption(func(s *settings) error {
		s.maxAttempts = n
		return within("MaxAttempts", n, 1, 1_000_000)
	})
}

// DiscardRejected removes rejected timers, as faststream-redis-timers does,
// instead of keeping them as dead letters.
func DiscardRejected() CommonOption {
	return commonOption(func(s *settings) error {
		s.discardRejected = true
		return nil
	})
}

// RetryOnLeaseExpiry is for topics. It leaves a timer whose handler failed to its lease, as
// faststream-redis-timers does: it comes back when the lease ends, and the
// failure is not counted. What bounds it is the cap on deliveries without a
// verdict, 10 above MaxAttempts. RetryIn and Reject work as ever.
func RetryOnLeaseExpiry() HandlerOption {
	return topicOption(func(s *settings) error {
		s.retryOnExpiry = true
		return nil
	})
}

func within[N ~int | ~int64](field string, n, low, high N) error {
	if n < low || n > high {
		return invalid(field, "%v is not within %v and %v", n, low, high)
	}
	return nil
}

// neverSettledSlack is how many deliveries without a verdict a timer survives
// beyond MaxAttempts: some are not its fault (a node that was killed).
const neverSettledSlack = 10

func (s settings) maxClaims() int { return min(s.maxAttempts, math.MaxInt32) + neverSettledSlack }
