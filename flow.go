package wakebell

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/expiry"
	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/redisops/audit"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
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

// KeyRun has a node lease up to n due timers of a key at once, 0 – 100; default 0, which means
// one. It hands a busy key on several times faster: its handlers run one after the other on the
// node, without a call of Redis in between. The order is that of PerKey(1).
//
// A key run begins when no timer of the key runs or waits for its retry, and has at most as many
// timers as the node has handlers free. The next one of it begins when the outcome of the one
// before is known to the node: it is handled or rejected, but Redis may not have stored that yet.
// If the node dies then, or has no Redis for longer than a lease, those of which Redis does not know
// are delivered again, after some that followed them; the first one alone. After a failure, a panic
// or a lost lease the rest of the key run returns to its place, as it does when the topic is paused, its
// settings change, its breaker opens, Redis is away or the node stops. A timer of it counts as running while
// it waits for those before it, also for List and Cancel, and one that is scheduled meanwhile for
// an earlier instant comes after the key run.
//
// When a node crashes, the rest of its key run comes back in the order of the key, for every
// setting of the node that takes it. KeyRun has an effect with PerKey(1), and none with
// RateLimitByKey, FairKeys or MaxInFlight.
func KeyRun(n int) HandlerOption {
	return topicOption(func(s *settings) error {
		s.keyRun = n
		return within("KeyRun", n, 0, maxKeyRun)
	})
}

// maxKeyRun is how many timers one exchange claims at most.
const maxKeyRun = 100

// FairKeys has the keys (see Key) of a topic with PerKey or RateLimitByKey take turns, over all
// nodes: in a turn, n timers of a key start, 0 – 100; default 0, which means that due timers
// start in the order of their instants. So a key with many due timers delays a timer of another
// by one turn, after the first ones were sorted. Within a key the order stays. KeyWeights has
// keys start more timers in a turn. A timer without a key takes its turn like the only one of a key.
//
// Give it to all nodes of a topic: those without it claim timers in the order of their
// instants. Without PerKey and RateLimitByKey it has no effect.
func FairKeys(n int) TopicTuningOption {
	return topicTuningOption(tuned(tuning.FairKeys, n))
}

// maxKeyWeights bounds how many classes KeyWeights has, and maxKeyClass their lengths in bytes.
const maxKeyWeights, maxKeyClass = 100, 64

// KeyWeights has keys start as many times FairKeys timers in a turn as the weight of their class,
// 1 – 100, up to 1,000 timers in all. A class is a key, or what is before the first ':' of a
// key: with {"gold": 10}, the keys "gold" and "gold:acme" have the weight 10. Other keys have
// 1. There are at most 100 classes, of 1 – 64 visible ASCII characters without ',' and '='.
func KeyWeights(weights map[string]int) HandlerOption {
	return topicOption(func(s *settings) error {
		errs := []error{within("KeyWeights", len(weights), 0, maxKeyWeights)}
		var classes []string
		for _, class := range slices.Sorted(maps.Keys(weights)) {
			if class == "" || len(class) > maxKeyClass || strings.ContainsFunc(class, func(r rune) bool { return r <= ' ' || r > '~' || r == ',' || r == '=' }) {
				errs = append(errs, argument.Invalid("KeyWeights", "class %q, want 1 to %d visible ASCII characters without ',' and '='", class, maxKeyClass))
			}
			errs = append(errs, within("KeyWeights "+class, weights[class], 1, 100))
			classes = append(classes, class+"="+strconv.Itoa(weights[class]))
		}
		s.keyWeights = strings.Join(classes, ",")
		return errors.Join(errs...)
	})
}

// Expiry ends timers that could begin only later than e.After after their instants: no
// handler receives them. They are removed, or become dead letters with e.DeadLetter, or are
// due on e.Topic at once with e.Topic, under their id, with the headers
// wakebelltype.ExpiredFromHeader and ExpiredReasonHeader; if that fails, they become dead
// letters. ExpireAfter sets a limit for a timer, which wins, also without this option.
//
// A timer begins once: a retry, a timer that was snoozed, and one whose node crashed with it
// have begun, however late they are. Time that it waits for its key, for a limit or for a
// free handler counts. Handlers of several nodes should have the same option. Nodes of
// earlier versions and Python workers know none: they handle late timers.
func Expiry(e wakebelltype.Expiry) HandlerOption {
	return topicOption(func(s *settings) error {
		s.expiry = e
		return expiry.Check(e)
	})
}

// ExpireAfter sets how long after its instant the timer may begin, 1 ms – 365 days; default
// that of the handler's topic. Later no handler receives it, see Expiry. The limit is the
// header wakebelltype.ExpiryHeader of the timer.
func ExpireAfter(d time.Duration) ScheduleOption {
	return func(draft *Draft) error {
		draft.env.Headers = append(draft.env.Headers, envelope.Header{Key: wakebelltype.ExpiryHeader, Value: d.String()})
		return within("ExpireAfter", d, wakebelltype.MinExpiry, wakebelltype.MaxExpiry)
	}
}

// expiry returns what ends the expired timers of a physical topic.
func (s *System) expiry(h *Handler, source *timers.TimerSource) *expiry.Topic {
	reference := func(d *poller.Delivery, env envelope.Envelope) payload.Decoded {
		return s.on.Payloads.Reference(payload.Encoded{Kind: wakebelltype.OutgoingTimer, Topic: h.topic, ID: d.ID, Headers: env.Headers, Body: env.Body, ContentType: env.ContentType})
	}
	return &expiry.Topic{
		Expiry: h.set.expiry,
		Discard: func(ctx context.Context, d *poller.Delivery, env envelope.Envelope, settle func() error) {
			s.discardBody(ctx, d.ID, d.Topic, reference(d, env), settle)
		},
		Send: func(ctx context.Context, d *poller.Delivery, env envelope.Envelope, reason string) error {
			key, err := source.Key(ctx, d.ID)
			if err != nil {
				return err
			}
			return s.sendExpired(ctx, *h, d, env, key, reason)
		},
	}
}

// sendExpired schedules an expired timer on the topic of its handler's Expiry.
func (s *System) sendExpired(ctx context.Context, h Handler, d *poller.Delivery, env envelope.Envelope, key, reason string) error {
	t := Timer[[]byte]{Body: slices.Clone(env.Body), Meta: meta(d, env)}
	if s.on.Payloads != nil {
		if _, err := s.decodePayload(ctx, h, &t); err != nil {
			return err
		}
	}
	draft := NewTopic[[]byte](h.set.expiry.Topic).Draft(t.Body, ID(d.ID))
	draft.key = key
	draft.env = envelope.Envelope{Body: t.Body, ContentType: t.ContentType, CorrelationID: t.CorrelationID, ReplyTo: t.ReplyTo}
	for _, header := range t.Headers {
		if header.Key != wakebelltype.ExpiryHeader {
			draft.env.Headers = append(draft.env.Headers, header)
		}
	}
	draft.env.Headers = append(draft.env.Headers,
		envelope.Header{Key: wakebelltype.ExpiredFromHeader, Value: h.topic}, envelope.Header{Key: wakebelltype.ExpiredReasonHeader, Value: reason})
	_, err := s.client.Schedule(ctx, draft)
	return err
}

// Shards divides the topic into n shards, 1 – 256; default 1. Redis Cluster spreads the
// shards over its servers, and one Redis uses a core for all of them. The number is stored
// in Redis and holds for all nodes and clients: the first node that starts while the topic
// has no timers and no dead letters stores it. Where another number is stored, that one
// applies, and the node logs a warning.
//
// The id of a timer decides its shard, or its Key, if it has one. So in a topic with
// shards, schedule an id with the same Key each time: with another Key it is another timer.
//
// RateLimit and MaxInFlight are divided among the shards. The burst of RateLimit is at
// least 1 in each of them; its rate is that of the topic. MaxInFlight must be at least the
// number of shards. Where it is less, because another number of shards is stored, each
// shard has 1, and the node logs a warning.
//
// Python workers and nodes of earlier versions do not find the timers of a topic with
// shards.
func Shards(n int) HandlerOption {
	return topicOption(func(s *settings) error {
		s.shards = n
		return within("Shards", n, 1, sharding.MaxShards)
	})
}

// Shards returns how the timers of a topic are divided into shards, as Redis stores it now.
func (c *Client) Shards(ctx context.Context, topic string) (wakebelltype.ShardLayout, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return wakebelltype.ShardLayout{}, err
	}
	l, err := c.store.Layout(ctx, full)
	return layoutOf(l), err
}

// Divide gives a topic n shards, 1 to 256, for all nodes and clients, and returns its
// layout. Nodes that handle the topic follow within 2 s. If the topic has timers or dead
// letters, or its last change has not ended, it keeps its number, and the error wraps
// ErrInvalid, unless the number is n already.
func (c *Client) Divide(ctx context.Context, topic string, n int) (wakebelltype.ShardLayout, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return wakebelltype.ShardLayout{}, err
	}
	l, err := c.store.Divide(ctx, full, n)
	if err == nil && l.Count() != n {
		why := "the topic has timers or dead letters"
		if l.Moving || l.To > 0 {
			why = "its last change has not ended"
		}
		err = argument.Invalid("shards", "%d for topic %s, which keeps its %d: %s", n, quoted(full), l.Count(), why)
	}
	c.record(ctx, wakebelltype.AuditTopicDivide, full, audit.One(audit.Details("shards", strconv.Itoa(n)), err))
	return layoutOf(l), err
}

// Reshard gives a topic n shards, 1 to 256, while nodes handle it and clients use it, and
// moves its timers and dead letters to them. It returns an iterator over its progress, a
// few times a second, whose last value is Done. It begins with two waits of 5 s, in which
// all clients learn of the change, and ends when all timers are moved. A timer that a
// handler has is not moved before it is settled, and one without a key that is due within
// 3 s is handled where it is. Timers with the same key are moved together, when a handler
// has none of them; if there are many, in several steps, between which no further one starts.
//
// If the loop over the iterator ends before, the topic stays usable: timers are handled
// and found where they are. Another call with the same n, of any process, continues. After
// an error, which it yields with the progress, the iterator ends. It is ErrInvalid if the
// topic is being changed to another number, if a move to another Redis has begun (finish it
// with MoveTopic or end it with AbortMove), or if the MaxInFlight of its overrides is less
// than n.
func (c *Client) Reshard(ctx context.Context, topic string, n int) iter.Seq2[wakebelltype.Resharding, error] {
	return func(yield func(wakebelltype.Resharding, error) bool) {
		full, err := c.fullName(topic)
		if err != nil {
			yield(wakebelltype.Resharding{}, err)
			return
		}
		var last wakebelltype.Resharding
		for p, failed := range c.store.Reshard(ctx, full, n) {
			last, err = wakebelltype.Resharding{Layout: layoutOf(p.Layout), Moved: p.Moved, Left: p.Left, Done: p.Done}, failed
			if !yield(last, err) {
				break
			}
		}
		c.record(ctx, wakebelltype.AuditTopicReshard, full, audit.Result{Count: last.Moved, Detail: audit.Details("shards", strconv.Itoa(n)), Err: err})
	}
}

func layoutOf(l sharding.Layout) wakebelltype.ShardLayout {
	to := wakebelltype.ShardLayout{Shards: l.Count(), Next: l.To, Before: l.From, Moving: l.Moving}
	if l.Since > 0 {
		to.Since = time.UnixMilli(l.Since)
	}
	return to
}
