package wakebell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/redisops/joins"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// needsID returns the error of an option that compares calls by their id, which would
// do nothing for a timer whose id is new in each call.
func (d *Draft) needsID() error {
	switch {
	case d.policy == wakebelltype.PolicyDebounce:
		return argument.Invalid("Debounce", "without an id: calls are merged by their id, and without one each is a new timer")
	case d.once != 0:
		return argument.Invalid("Once", "without an id: it is the id that fires once, and without one each call has a new id")
	}
	return nil
}

// Draft is a timer that is not stored yet. Topic.Draft returns it.
type Draft struct {
	topic, id      string
	env            envelope.Envelope
	at             time.Time
	in             time.Duration
	planned        bool // whether At, In or Debounce was given
	policy         wakebelltype.Policy
	maxDelay       time.Duration // of Debounce
	key            string
	once           time.Duration
	replicas       int // that must confirm it within replicaTimeout
	replicaTimeout time.Duration
	join           *joining // nil: it has to do with no join
	err            error
}

// ID returns the id that the timer will have.
func (d Draft) ID() string { return d.id }

// entry encodes the draft for the store.
func (d Draft) entry(limit int) (timers.Entry, error) {
	if d.err != nil {
		return timers.Entry{}, d.err
	}
	d.env.CorrelationID = cmp.Or(d.env.CorrelationID, d.id)
	if d.join != nil {
		d.env.Headers = joins.Headers(d.env.Headers, d.join.name, d.join.refs...)
	}
	payload, err := d.env.AppendTo(nil)
	if err != nil {
		return timers.Entry{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if len(payload) > limit {
		return timers.Entry{}, argument.Invalid("body", "%d bytes with its headers, the limit is %d", len(payload), limit)
	}
	return timers.Entry{
		ID: d.id, Payload: payload, At: d.at, In: d.in,
		Key: d.key, Policy: d.policy, MaxDelay: d.maxDelay, Once: d.once,
		Replicas: d.replicas, ReplicaTimeout: d.replicaTimeout,
	}, nil
}

// Schedule stores drafts of one or several topics, and returns the results in
// the same order. It checks all drafts before it writes the first; an error names
// the draft by its index.
//
// Up to 500 drafts and 1 MiB of one topic are stored in one atomic round trip,
// larger batches in several. After an error, part of a larger batch may be
// stored; repeat the same call to store the rest. With ErrTooFewReplicas all
// drafts are stored, and the results are valid.
func (c *Client) Schedule(ctx context.Context, drafts ...Draft) ([]wakebelltype.Scheduled, error) {
	if c != nil && c.store != nil && slices.ContainsFunc(drafts, func(d Draft) bool { return d.join != nil }) {
		return c.scheduleJoined(ctx, nil, drafts)
	}
	if c != nil && c.store != nil && !c.on.Edge.Plain(ctx) {
		return c.send(ctx, nil, drafts)
	}
	b, err := c.batch(drafts)
	if err != nil {
		return nil, err
	}
	return c.store.Write(ctx, nil, b)
}

// batch encodes and checks drafts, which are all that Client.Schedule may write.
func (c *Client) batch(drafts []Draft) (b timers.Batch, err error) {
	if c == nil || c.store == nil {
		return b, errNoClient
	}
	b = timers.NewBatch(c.on.Prefix, len(drafts))
	for i := range drafts {
		entry, err := drafts[i].entry(c.on.PayloadLimit)
		if err == nil {
			err = b.Add(drafts[i].topic, &entry)
		}
		if err != nil {
			return timers.Batch{}, fmt.Errorf("timer %d: %w", i, err)
		}
	}
	return b, nil
}

// ScheduleOption sets when and how a timer is scheduled. Schedule returns
// ErrInvalid for an invalid one, and writes nothing.
type ScheduleOption func(*Draft) error

// In makes the timer due d after it is stored, by Redis's clock; at once if d is
// negative. In, At and Debounce exclude each other.
func In(d time.Duration) ScheduleOption {
	return func(draft *Draft) error {
		draft.in = max(d, 0)
		return draft.plan()
	}
}

// At makes the timer due at t, rounded up to the microsecond; at once if t is in
// the past. The zero time is invalid.
func At(t time.Time) ScheduleOption {
	return func(draft *Draft) error {
		if t.IsZero() {
			return argument.Invalid("At", "zero time")
		}
		draft.at = t
		return draft.plan()
	}
}

func (d *Draft) plan() error {
	if d.planned {
		return argument.Invalid("In, At, Debounce", "one of them, once")
	}
	d.planned = true
	return nil
}

// ID sets the id of the timer, 1 – 512 bytes of UTF-8; default a new UUID. Ids are
// unique in a topic: an existing timer of the same id is replaced, unless IfExists
// or Debounce sets another policy.
func ID(id string) ScheduleOption {
	return func(d *Draft) error {
		if id == "" {
			return argument.Invalid("ID", "empty; leave it out for a new one")
		}
		d.id = id
		return nil
	}
}

// Header adds a header; key and value have at most 65,535 bytes each. A second
// header with the same key replaces the value. The keys correlation_id,
// content-type and reply_to are reserved; use CorrelationID and ContentType.
func Header(key, value string) ScheduleOption {
	return func(d *Draft) error {
		if err := envelope.CheckHeader(key, value); err != nil {
			return argument.Invalid("Header "+quoted(key), "%v", err)
		}
		d.env.Headers = append(d.env.Headers, envelope.Header{Key: key, Value: value})
		return nil
	}
}

// CorrelationID sets the id that relates the timer to its cause, at most 65,535
// bytes; default the timer's id.
func CorrelationID(id string) ScheduleOption {
	return func(d *Draft) error {
		if len(id) > envelope.MaxHeaderBytes {
			return argument.Invalid("CorrelationID", "%d bytes, at most %d", len(id), envelope.MaxHeaderBytes)
		}
		d.env.CorrelationID = id
		return nil
	}
}

// ContentType sets the media type of the body of a Topic[[]byte], at most 65,535
// bytes; default none. It is invalid for other topics, whose type determines the
// content type.
func ContentType(mediaType string) ScheduleOption {
	return func(d *Draft) error {
		if len(mediaType) > envelope.MaxHeaderBytes {
			return argument.Invalid("ContentType", "%d bytes, at most %d", len(mediaType), envelope.MaxHeaderBytes)
		}
		d.env.ContentType = mediaType
		return nil
	}
}

// quoted returns an input for an error text, shortened and in quotes.
func quoted(s string) string { return strconv.Quote(text.Clip(s, 64)) }

// IfExists sets the policy for an existing id; default PolicyReplace. It excludes
// Debounce, which is a policy of its own.
func IfExists(p wakebelltype.Policy) ScheduleOption {
	return func(d *Draft) error {
		switch {
		case p > wakebelltype.PolicyEarliest:
			return argument.Invalid("IfExists", "unknown policy %d", p)
		case d.policy == wakebelltype.PolicyDebounce:
			return argument.Invalid("IfExists", "Debounce is the policy")
		}
		d.policy = p
		return nil
	}
}

// Debounce merges repeated calls for an id into one timer. The timer fires d after
// the last call, with that call's body, and at the latest limit after the first. A
// limit of 0 means no bound. d must be above 0, and limit 0 or at least d. It requires
// the option ID: without an id, each call would be a timer of its own.
//
// A failed delivery resets the limit: the next call counts as the first. So does a
// call while a handler runs, which is superseded. Each call applies its own limit,
// so use the same one in all calls for an id.
func Debounce(d, limit time.Duration) ScheduleOption {
	return func(draft *Draft) error {
		switch {
		case d <= 0:
			return argument.Invalid("Debounce", "%v, want above 0", d)
		case limit != 0 && limit < d:
			return argument.Invalid("Debounce", "a limit of %v, want at least the delay of %v, or 0", limit, d)
		case draft.policy != wakebelltype.PolicyReplace:
			return argument.Invalid("Debounce", "it is a policy of its own, without IfExists")
		}
		draft.in, draft.maxDelay, draft.policy = d, limit, wakebelltype.PolicyDebounce
		return draft.plan()
	}
}

// Once makes the id fire once, even if it is scheduled with Once repeatedly, from
// now until window after the instant at which it is due; window is 1 ms – 100
// years. Use it if a schedule may be retried after the timer has fired, because
// the reply was lost. It requires the option ID: without it each call has a new id.
// During that time
//
//   - a timer that was not delivered yet is treated by its policy;
//   - a timer that was delivered, and runs or waits for its next attempt, is kept;
//   - a timer that is gone, because it was handled, dead-lettered or cancelled, is
//     not written again: the Outcome is OutcomeAlreadyDone.
//
// A schedule of the same id without Once is not affected. The window should be
// longer than the retries of the caller and those of the timer together. Redis
// stores a small key per timer until the window is over; do not use Once if Redis
// may evict keys with an expiry.
func Once(window time.Duration) ScheduleOption {
	return func(d *Draft) error {
		d.once = window
		return within("Once", window, time.Millisecond, timers.MaxOnce)
	}
}

// WithReplicas makes Schedule wait until n replicas (1 – 100) have confirmed the
// timer, for at most timeout (1 ms – 1 min, shortened to the deadline of the
// context). If fewer confirm in time, the error is ErrTooFewReplicas. The timer is
// stored and will be delivered in either case; scheduling it again waits again.
// Drafts of one topic that are stored together wait for the largest n and timeout
// among them.
//
// WithReplicas uses the WAIT command: it makes the loss of the timer in a failover
// unlikely, not impossible. A replica that confirmed has the timer in memory, not
// necessarily on disk, and a failover may promote another replica. Later writes,
// such as claims and acks, are not waited for.
func WithReplicas(n int, timeout time.Duration) ScheduleOption {
	return func(d *Draft) error {
		d.replicas, d.replicaTimeout = n, timeout
		return errors.Join(within("WithReplicas", n, 1, timers.MaxReplicas),
			within("WithReplicas timeout", timeout, time.Millisecond, timers.MaxReplicaTimeout))
	}
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
