package wakebell

import (
	"cmp"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/wakebell/wakebell/actors/guard"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/wakebelltype"
)

// settings are a handler's options with their defaults.
type settings struct {
	tuned           wakebelltype.Settings // what can change while the handler runs; MaxLeaseAge 0 means none
	discardRejected bool
	panicBackoff    bool
	retryOnExpiry   bool
	skipFailed      bool   // for PerKey
	keyRun          int    // for PerKey(1)
	keyWeights      string // for FairKeys
	shards          int    // 0: as stored
	window          time.Duration
	history         wakebelltype.HistoryPolicy
	middleware      []Middleware
	batchMiddleware []BatchMiddleware
	target          *poller.Target
	queue           *queueHandling // nil: a topic
	batch           poller.Batch
	breaker         *wakebelltype.Breaker  // nil: none
	adaptive        *wakebelltype.Adaptive // nil: none
	group           string                 // empty: none
	weight          int                    // in group
	keepResults     time.Duration          // 0: defaultKeepResults
	results         bool                   // the handler returns results
	expiry          wakebelltype.Expiry
}

// groups are the groups of topics of a System, by their names.
type groups struct {
	mu     sync.Mutex
	byName map[string]*guard.Group
}

// named returns a group; nil for an empty name.
func (g *groups) named(name string) *guard.Group {
	if name == "" {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.byName[name] == nil {
		if g.byName == nil {
			g.byName = map[string]*guard.Group{}
		}
		g.byName[name] = &guard.Group{}
	}
	return g.byName[name]
}

func defaultSettings() settings {
	return settings{tuned: tuning.Defaults(), window: poller.AutomaticWindow}
}

// applyAll applies options by one of their methods, and joins their errors.
func applyAll[O any](s *settings, opts []O, apply func(O, *settings) error) error {
	var errs []error
	for i, opt := range opts {
		if any(opt) == nil {
			errs = append(errs, argument.Invalid("option", "number %d is nil", i))
			continue
		}
		errs = append(errs, apply(opt, s))
	}
	return errors.Join(errs...)
}

// retune applies options to the settings of a running handler.
func (s *settings) retune(opts []TopicTuningOption) error {
	return errors.Join(applyAll(s, opts, TopicTuningOption.tune), s.validate())
}

// validate checks options against each other.
func (s settings) validate() error {
	if t := s.tuned; t.MaxPollingInterval < t.PollingInterval {
		return argument.Invalid("MaxPollingInterval", "%v is below PollingInterval, %v", t.MaxPollingInterval, t.PollingInterval)
	}
	if most := s.tuned.MaxInFlight; most > 0 && most < s.shards {
		return argument.Invalid("MaxInFlight", "%d, want at least the number of shards, %d", most, s.shards)
	}
	return nil
}

// HandlerOption configures the handler of a topic; see Handle and Forward. New
// returns ErrInvalid for an option that is out of its range.
type HandlerOption interface {
	applyTopic(s *settings) error
}

// QueueHandlerOption configures the handler of a queue; see HandleQueue and
// ForwardQueue. New returns ErrInvalid for an option that is out of its range.
type QueueHandlerOption interface {
	applyQueue(s *settings) error
}

// CommonOption configures the handler of a topic or of a queue.
type CommonOption interface {
	HandlerOption
	QueueHandlerOption
}

// TopicTuningOption configures the handler of a topic, and can be changed while the
// handler runs; see System.RetuneLocal.
type TopicTuningOption interface {
	HandlerOption
	tune(s *settings) error
}

// TuningOption is a TopicTuningOption that also configures the handler of a queue.
type TuningOption interface {
	TopicTuningOption
	QueueHandlerOption
}

type (
	topicOption       func(*settings) error
	queueOption       func(*settings) error
	commonOption      func(*settings) error
	topicTuningOption func(*settings) error
	tuningOption      func(*settings) error
)

func (o topicOption) applyTopic(s *settings) error  { return o(s) }
func (o queueOption) applyQueue(s *settings) error  { return o(s) }
func (o commonOption) applyTopic(s *settings) error { return o(s) }
func (o commonOption) applyQueue(s *settings) error { return o(s) }
func (o tuningOption) applyTopic(s *settings) error { return o(s) }

func (o topicTuningOption) applyTopic(s *settings) error { return o(s) }
func (o topicTuningOption) tune(s *settings) error       { return o(s) }
func (o tuningOption) applyQueue(s *settings) error      { return o(s) }
func (o tuningOption) tune(s *settings) error            { return o(s) }

// tuned returns the option that sets a setting, and checks its range.
func tuned[N ~int | ~int64](t *tuning.Setting, n N) tuningOption {
	return func(s *settings) error {
		t.Set(&s.tuned, int64(n))
		low := t.Low
		if t.Off {
			low = 0
		}
		return within(t.Option, n, N(low), N(t.High))
	}
}

// MaxConcurrent sets how many timers of the topic this node handles at once,
// 1 – 10,000; default 5. For batches it sets how many calls run at once.
func MaxConcurrent(n int) TuningOption {
	return tuned(tuning.MaxConcurrent, n)
}

// LeaseTTL sets the lifetime of a lease, 100 ms – 24 h; default 30 s, for queues
// 5 min. Timers of a crashed node are delivered again when their leases expire.
// While a handler runs, its lease is extended after each third of the lifetime.
func LeaseTTL(d time.Duration) TuningOption {
	return tuned(tuning.LeaseTTL, d)
}

// MaxLeaseAge bounds the duration of a handler, 0 – 30 days; default 0, which
// means no bound, for queues 1 h. After that, the context of the handler is
// cancelled with the cause ErrLeaseTooOld, the handler no longer counts against
// MaxConcurrent, and the timer is retried as after an error.
func MaxLeaseAge(d time.Duration) TuningOption {
	return tuned(tuning.MaxLeaseAge, d)
}

// PollingInterval sets the first delay of the polling backoff on an idle topic,
// 1 ms – 1 h; default 50 ms. It matters for timers of Python peers, which do not
// notify the nodes.
func PollingInterval(d time.Duration) TuningOption {
	return tuned(tuning.PollingInterval, d)
}

// MaxPollingInterval caps the polling backoff on an idle topic, 1 ms – 1 h and at
// least PollingInterval; default 5 s, for queues 1 s. Each delay has a jitter of
// ±50 %, applied after the cap, so the longest delay is 1.5 times the cap.
func MaxPollingInterval(d time.Duration) TuningOption {
	return tuned(tuning.MaxPollingInterval, d)
}

// RetryBackoff sets the delay after the first failure, which doubles with each
// further failure, and its limit. Each is 1 ms – 30 days, the limit at least
// initial; defaults 1 s and 1 h. Each delay has a jitter of ±20 %.
func RetryBackoff(initial, limit time.Duration) TuningOption {
	return tuningOption(func(s *settings) error {
		if err := tuned(tuning.RetryInitial, initial)(s); err != nil {
			return err
		}
		s.tuned.RetryLimit = limit
		return within(tuning.RetryLimit.Option, limit, initial, time.Duration(tuning.RetryLimit.High))
	})
}

// MaxAttempts sets at which failure a timer is dead-lettered, 1 – 1,000,000; default
// 25. For a queue it sets at which delivery a message is dead-lettered if it is not
// handled, whether that delivery fails or crashes; default 10.
//
// A panic of the handler is a failure. A delivery of a timer that ends without a verdict,
// such as the crash of a node, is not. A timer is also dead-lettered after MaxAttempts + 10
// deliveries that ended without a verdict.
func MaxAttempts(n int) TuningOption {
	return tuned(tuning.MaxAttempts, n)
}

// DiscardRejected deletes rejected timers, as faststream-redis-timers does,
// instead of dead-lettering them.
func DiscardRejected() CommonOption {
	return commonOption(func(s *settings) error {
		s.discardRejected = true
		return nil
	})
}

// PanicBackoff retries a timer whose handler panicked after the topic's backoff, as if
// the handler had returned an error. By default it is due again when its lease would have
// expired: a handler that panics may have left something behind, and a program that panics
// again and again is given time. Either way the handler's actor is restarted, the panic
// counts as a failure towards MaxAttempts, and its text and place are the reason of the
// failure. AtMostOnce and RetryOnLeaseExpiry take precedence.
func PanicBackoff() CommonOption {
	return commonOption(func(s *settings) error {
		s.panicBackoff = true
		return nil
	})
}

// RetryOnLeaseExpiry retries a timer whose handler failed when its lease expires,
// as faststream-redis-timers does, also after a panic. Such a delivery ends without a verdict: it is no
// failure, and after MaxAttempts + 10 of them the timer is dead-lettered. RetryIn and
// Reject are not affected.
func RetryOnLeaseExpiry() HandlerOption {
	return topicOption(func(s *settings) error {
		s.retryOnExpiry = true
		return nil
	})
}

// DeliveryWindow sets for how long a node waits after it has claimed timers before it
// claims the next ones, 0 – 10 s, so that timers that become due meanwhile, and the
// verdicts of handlers, share an exchange with Redis. The first timer after a window
// is delivered at once, and so are timers that are already late. A window adds at most
// its length to the lateness of the others.
//
// By default the window follows the load: it is closed while fewer than 500 timers a
// second are due, opens up to 5 ms at 1,000 a second, and narrows again above 12,800,
// where exchanges are full without it. Exchanges are expensive: at 2,000 timers a second
// the default divides the CPU time of a timer by about three. DeliveryWindow(0)
// switches it off; a fixed window of more than 5 ms is for topics on which only
// throughput counts. A window is at most a tenth of LeaseTTL.
//
// By default a node also claims timers of a busy topic up to 400 ms before their
// instants, and keeps them until then. They are shown as running: a cancel says so, and
// stops them before they begin. With any window of your own, or flow control, nothing is
// claimed early.
func DeliveryWindow(d time.Duration) CommonOption {
	return commonOption(func(s *settings) error {
		s.window = d
		return within("DeliveryWindow", d, 0, 10*time.Second)
	})
}

// Breaker pauses the topic or queue on this node while its handler fails: if at least
// FailureRatio of at least Deliveries deliveries within Window fail, the node claims
// nothing for OpenFor; running handlers finish. Then it claims one timer. If that fails,
// it claims nothing for OpenFor again, and otherwise it goes on. Other nodes decide for
// themselves.
//
// Errors, rejections, panics and hung handlers are failures. Timers that were released,
// cancelled or lost, or whose bodies cannot be decoded, do not count.
func Breaker(b wakebelltype.Breaker) CommonOption {
	return commonOption(func(s *settings) error {
		b := b // an option may be applied more than once, at the same time
		b.Deliveries, b.Window, b.OpenFor = cmp.Or(b.Deliveries, 20), cmp.Or(b.Window, time.Minute), cmp.Or(b.OpenFor, 30*time.Second)
		s.breaker = &b
		var ratio error
		if !(b.FailureRatio > 0 && b.FailureRatio <= 1) {
			ratio = argument.Invalid("Breaker.FailureRatio", "%v, want above 0 and up to 1", b.FailureRatio)
		}
		return errors.Join(ratio, within("Breaker.Deliveries", b.Deliveries, 1, 1_000_000),
			within("Breaker.Window", b.Window, 10*time.Millisecond, 24*time.Hour), within("Breaker.OpenFor", b.OpenFor, 10*time.Millisecond, 24*time.Hour))
	})
}

// AdaptiveConcurrency lets the node handle fewer timers at once than MaxConcurrent, as
// many as its handler stands: the number grows while the handler is about as fast as
// under little load, and shrinks when it becomes slower than that by Slowdown, or when
// FailureRatio of its deliveries fail. Each node decides for itself, and begins with
// Min. Client.Retune changes the upper bound with MaxConcurrent.
//
// Successes alone are measured, from the call of the handler to its return. For batches
// the number of calls adapts, by those that are more than half full.
func AdaptiveConcurrency(a wakebelltype.Adaptive) CommonOption {
	return commonOption(func(s *settings) error {
		a := a // an option may be applied more than once, at the same time
		a.Min, a.Slowdown, a.FailureRatio = cmp.Or(a.Min, 1), cmp.Or(a.Slowdown, 1.5), cmp.Or(a.FailureRatio, 0.1)
		s.adaptive = &a
		var slowdown, ratio error
		if !(a.Slowdown > 1 && a.Slowdown <= 10) {
			slowdown = argument.Invalid("Adaptive.Slowdown", "%v, want above 1 and up to 10", a.Slowdown)
		}
		if !(a.FailureRatio > 0 && a.FailureRatio <= 1) {
			ratio = argument.Invalid("Adaptive.FailureRatio", "%v, want above 0 and up to 1", a.FailureRatio)
		}
		return errors.Join(within("Adaptive.Min", a.Min, 1, int(tuning.MaxConcurrent.High)), slowdown, ratio)
	})
}

// Weight shares one bound of concurrency among topics and queues of this node that
// name the same group, which gives them priorities: while several have timers that
// are due, they start timers in the proportion of their weights, 1 – 1,000; one alone
// may use the whole bound, and none starves. The bound is the largest MaxConcurrent of
// the group, for batches times BatchSize; that of a topic holds besides. Timers of a
// group are not prefetched. Other nodes share by their own options.
func Weight(group string, weight int) CommonOption {
	return commonOption(func(s *settings) error {
		s.group, s.weight = group, weight
		return errors.Join(within("Weight group", len(group), 1, 128), within("Weight", weight, 1, 1000))
	})
}

func within[N ~int | ~int64](field string, n, low, high N) error {
	if n < low || n > high {
		return argument.Invalid(field, "%v is not within %v and %v", n, low, high)
	}
	return nil
}

// neverSettledSlack is how many deliveries beyond MaxAttempts may end without a
// verdict: the timer does not cause all crashes, for instance if a node is killed.
const neverSettledSlack = 10

func (s settings) maxClaims() int { return min(s.tuned.MaxAttempts, math.MaxInt32) + neverSettledSlack }
