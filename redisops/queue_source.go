package redisops

import (
	"context"
	"crypto/sha1" //nolint:gosec // a name for what has none, not a secret
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/wakebell/wakebell/internal/stored"
	"github.com/wakebell/wakebell/messages/exchange"
)

// QueueOptions bound the view that a poller has of a queue; the zero value takes
// the defaults.
type QueueOptions struct {
	// MaxBytes is the most that one reply holds of messages, default 256 KiB; the
	// first lease passes in any case.
	MaxBytes int
	// MaxDeliveries is how often a message is delivered; the next claim makes it a
	// dead letter, "too many deliveries". 0: no such bound.
	MaxDeliveries int
	// DeadCap is how many dead letters are kept, the oldest go first. 0: all.
	DeadCap int64
	// Completed and Failed are how many payloads are kept of what was handled, and
	// of what ended with [exchange.Fail]. 0: none.
	Completed, Failed int64
	// AtMostOnce gives messages no visibility timeout: what a crash interrupts is
	// lost.
	AtMostOnce bool
	// FreeKeys has what fails for good release its deduplication key, if the
	// publisher said which it is.
	FreeKeys bool
}

// QueueSource is a queue as its poller sees it.
type QueueSource struct {
	*Queue
	shard string
	opts  QueueOptions
}

// Shard is as of [TimerSource.Shard].
func (s *QueueSource) Shard() string { return s.shard }

// Source gives the view of a queue that a poller works on.
func (q *Queue) Source(o QueueOptions) *QueueSource {
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultReplyBytes
	}
	o.MaxDeliveries, o.DeadCap = max(o.MaxDeliveries, 0), max(o.DeadCap, 0)
	o.Completed, o.Failed = max(o.Completed, 0), max(o.Failed, 0)
	return &QueueSource{Queue: q, shard: q.timers.shardOf(q.keys.pending), opts: o}
}

// Exchange runs one exchange; see package exchange for its contract. Errors are
// those of [TimerSource.Exchange].
//
// A lease's token holds the message as it is stored, for that is its identity.
// Failures are the deliveries before, as Redis does not tell those that crashed
// from those that failed.
func (s *QueueSource) Exchange(ctx context.Context, r *exchange.Request) (*exchange.Reply, error) {
	if err := checkRequest(r, exchange.Fail); err != nil {
		return nil, err
	}
	k := s.keys
	keys := []string{
		k.pending, k.processing, k.deadlines, k.tokens, k.counter, k.counts, k.refs, k.ids, k.backrefs,
		k.completed, k.failed, k.dlq, k.letters, k.gone, k.stream(r.Incarnation, r.Stream), k.hint,
	}
	args, order, err := s.args(r)
	if err != nil {
		return nil, err
	}
	text, err := s.timers.runText(ctx, queueExchangeScript, keys, args...)
	if err != nil {
		return nil, fmt.Errorf("exchange on queue %q: %w", s.Name(), err)
	}
	reply, err := s.parse(text, r.LeaseTTL)
	if err != nil {
		return nil, fmt.Errorf("exchange on queue %q: %w", s.Name(), err)
	}
	reorder(reply, order)
	return reply, nil
}

// queueVerdicts is the order in which the script takes settlements.
var queueVerdicts = [...]exchange.Verdict{exchange.Ack, exchange.Nack, exchange.Bury, exchange.Fail, exchange.Release}

// args lays out the request as lua/queue_exchange.lua says; order gives the
// place in the request of each settlement there.
func (s *QueueSource) args(r *exchange.Request) (args []any, order []int, err error) {
	ttl := max(r.LeaseTTL.Milliseconds(), 1)
	if s.opts.AtMostOnce {
		ttl = 0
	}
	owners := ""
	if s.opts.FreeKeys {
		owners = s.keys.owners
	}
	args = []any{
		r.Sequence, ttl, r.Want, s.opts.MaxBytes, s.opts.MaxDeliveries, s.opts.DeadCap,
		s.opts.Completed, s.opts.Failed, owners,
	}
	order = make([]int, 0, len(r.Settle))
	for _, verdict := range queueVerdicts {
		n := len(order)
		for i := range r.Settle {
			if r.Settle[i].Verdict == verdict {
				order = append(order, i)
			}
		}
		args = append(args, len(order)-n)
	}
	args = append(args, len(r.Extend))
	tokens := make([]any, 0, len(order)+len(r.Extend))
	put := func(h exchange.Held) {
		token, message, ok := strings.Cut(string(h.Token), " ")
		if !ok {
			err = fmt.Errorf("%w: token of %q is no lease of a queue", ErrInvalid, h.ID)
		}
		args, tokens = append(args, message), append(tokens, token)
	}
	for _, i := range order {
		put(r.Settle[i].Held)
	}
	for _, h := range r.Extend {
		put(h)
	}
	args = append(args, tokens...)
	for i := range r.Settle {
		if v := r.Settle[i]; v.Verdict == exchange.Nack {
			args = append(args, (max(v.Delay, 0) + time.Millisecond - 1).Milliseconds())
		}
	}
	for i := range r.Settle {
		if v := r.Settle[i]; v.Verdict == exchange.Bury {
			args = append(args, clip(v.Reason, maxReason))
		}
	}
	return args, order, err
}

// parse reads the answer of lua/queue_exchange.lua. Tokens share the reply's
// memory. What is delivered at most once is good for ttl: nobody takes it away.
func (s *QueueSource) parse(text string, ttl time.Duration) (*exchange.Reply, error) {
	r := reader{text: text}
	out := new(exchange.Reply)
	now, end := r.score(), r.score()
	out.Now, out.Remaining = instant(now), between(now, end)
	if s.opts.AtMostOnce {
		out.Remaining = ttl
	}
	out.Next = time.Duration(min(r.integer(), int(maxMicros))) * time.Microsecond
	out.Orphans = r.integer() != 0
	refused, buried, leases := r.count(), r.count(), r.count()
	for range refused {
		out.Refused = append(out.Refused, r.refusal())
	}
	for range buried {
		out.Buried = append(out.Buried, r.queueBurial())
	}
	if leases > 0 && r.err == nil {
		out.Leases = make([]exchange.Lease, leases)
	}
	for i := range out.Leases {
		out.Leases[i] = r.message(out.Now)
	}
	if r.err == nil && r.text != "" {
		r.fail("more than announced")
	}
	if r.err != nil {
		return nil, r.err
	}
	return out, nil
}

const tooManyDeliveries = "too many deliveries"

func (r *reader) queueBurial() exchange.Burial {
	b := exchange.Burial{Index: r.integer(), Entry: strings.Clone(r.word()), At: instant(r.score()), Claims: r.integer()}
	idBytes, payloadBytes := r.count(), r.count()
	b.ID = strings.Clone(r.take(idBytes))
	b.Activation = publishedAt(b.ID, b.At)
	b.Failures = b.Claims
	if payload := r.take(payloadBytes); b.Index < 0 {
		b.Index, b.Payload, b.Reason = -1, []byte(payload), tooManyDeliveries
	}
	return b
}

func (r *reader) message(now time.Time) exchange.Lease {
	token := r.word()
	l := exchange.Lease{Claims: r.integer()}
	value := r.take(r.count())
	l.Failures = max(l.Claims-1, 0)
	l.Token = exchange.Token(token + " " + value)
	var err error
	if l.ID, l.Payload, err = stored.Decode(value); err != nil {
		l.Fault = err.Error()
	}
	if faultOf(l.ID) != "" {
		sum := sha1.Sum([]byte(value)) //nolint:gosec // as queue.lua names it
		l.ID = hex.EncodeToString(sum[:])
	}
	l.Activation = publishedAt(l.ID, now)
	return l
}

// publishedAt reads the instant out of an id that is a UUID of version 7, as
// Wakebell makes them; others do not tell it, and it is now.
func publishedAt(id string, now time.Time) time.Time {
	if len(id) != 32 || id[12] != '7' {
		return now
	}
	ms, err := strconv.ParseInt(id[:12], 16, 64)
	if at := time.UnixMilli(ms).UTC(); err == nil && !at.After(now) {
		return at
	}
	return now
}

// healLetters is how many dead letters Heal compares with their records.
const healLetters = 100_000

// Heal removes records of dead letters that somebody else has taken out of the
// list. Of a longer list than 100,000 it leaves them.
func (s *QueueSource) Heal(ctx context.Context) (removed int, err error) {
	records, err := s.timers.rdb.HGetAll(ctx, s.keys.letters).Result()
	if err != nil || len(records) == 0 {
		return 0, wrap(ctx, nil, err)
	}
	for from := int64(0); ; from += 1000 {
		page, err := s.timers.rdb.LRange(ctx, s.keys.dlq, -from-1000, -from-1).Result()
		if err != nil {
			return 0, wrap(ctx, nil, err)
		}
		for _, payload := range page {
			sum := sha1.Sum([]byte(payload)) //nolint:gosec // as queue_exchange.lua names it
			delete(records, hex.EncodeToString(sum[:]))
		}
		if len(page) < 1000 {
			break
		}
		if from > healLetters {
			return 0, nil
		}
	}
	args := make([]any, 0, 2*len(records))
	for field, value := range records {
		args = append(args, field, value)
	}
	if len(args) == 0 {
		return 0, nil
	}
	text, err := s.timers.runText(ctx, queueRecordsScript, []string{s.keys.letters}, args...)
	if err != nil {
		return 0, fmt.Errorf("heal queue %q: %w", s.Name(), err)
	}
	return strconv.Atoi(text)
}
