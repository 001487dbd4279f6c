package queue

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
	"github.com/wakebell/wakebell/redisops"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// SourceOptions bound the view that a poller has of a queue; the zero value takes
// the defaults.
type SourceOptions struct {
	// MaxBytes is the most that one reply holds of messages, default 256 KiB; the
	// first lease passes in any case.
	MaxBytes int
	// MaxDeliveries is how often a message is delivered; the next claim makes it a
	// dead letter, "too many deliveries". 0: no such bound.
	MaxDeliveries int
	// DeadCap is how many dead letters are kept, the oldest go first, at most 500
	// more in one step than it adds. 0: all.
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

// Source is a queue as its poller sees it.
type Source struct {
	*Queue
	shard string
	opts  SourceOptions
}

// Shard is as of [TimerSource.Shard].
func (s *Source) Shard() string { return s.shard }

// Source gives the view of a queue that a poller works on.
func (q *Queue) Source(o SourceOptions) *Source {
	if o.MaxBytes <= 0 {
		o.MaxBytes = layout.DefaultReplyBytes
	}
	o.MaxDeliveries, o.DeadCap = max(o.MaxDeliveries, 0), max(o.DeadCap, 0)
	o.Completed, o.Failed = max(o.Completed, 0), max(o.Failed, 0)
	return &Source{Queue: q, shard: q.timers.ShardOf(q.keys.pending), opts: o}
}

// Exchange runs one exchange; see package exchange for its contract. Errors are
// those of [TimerSource.Exchange]. What is much to settle is settled in steps
// before the last one, which extends and claims; each step of a retry is answered
// as it was.
//
// A lease's token holds the message as it is stored, for that is its identity.
// Failures are the deliveries before, as Redis does not tell those that crashed
// from those that failed.
func (s *Source) Exchange(ctx context.Context, r *exchange.Request) (*exchange.Reply, error) {
	if err := scripts.CheckRequest(r, exchange.Fail); err != nil {
		return nil, err
	}
	all := new(exchange.Reply)
	rest := *r
	for step := 1; ; step++ {
		n := fitting(rest.Settle)
		if n == len(rest.Settle) {
			reply, err := s.exchange(ctx, &rest, s.keys.stream(r.Incarnation, r.Stream))
			if err != nil {
				return nil, err
			}
			add(reply, all, len(r.Settle)-n)
			return reply, nil
		}
		part := exchange.Request{
			Incarnation: r.Incarnation, Stream: r.Stream, Sequence: r.Sequence, LeaseTTL: r.LeaseTTL, Settle: rest.Settle[:n],
		}
		reply, err := s.exchange(ctx, &part, s.keys.stream(r.Incarnation, r.Stream)+":"+strconv.Itoa(step))
		if err != nil {
			return nil, err
		}
		add(reply, all, len(r.Settle)-len(rest.Settle))
		all.Refused, all.Buried, rest.Settle = reply.Refused, reply.Buried, rest.Settle[n:]
	}
}

const (
	// Settlements that go in one script call, at the most: a dead letter takes
	// 30 µs, and of large messages each byte is hashed and copied several times.
	stepSettlements = 150
	stepBytes       = 1 << 20
)

// fitting is how many of the first settlements go in one script call.
func fitting(list []exchange.Settlement) int {
	size := 0
	for i := range min(len(list), stepSettlements) {
		if size += len(list[i].Token); i > 0 && size > stepBytes {
			return i
		}
	}
	return min(len(list), stepSettlements)
}

// add puts what earlier steps of an exchange answered before the reply of this
// one, whose settlements begin at an index.
func add(reply, earlier *exchange.Reply, from int) {
	for i := range reply.Refused {
		reply.Refused[i].Index += from
	}
	for i := range reply.Buried {
		if reply.Buried[i].Index >= 0 {
			reply.Buried[i].Index += from
		}
	}
	reply.Refused = append(earlier.Refused, reply.Refused...)
	reply.Buried = append(earlier.Buried, reply.Buried...)
}

// exchange is one script call; stream is where its answer is kept.
func (s *Source) exchange(ctx context.Context, r *exchange.Request, stream string) (*exchange.Reply, error) {
	k := s.keys
	keys := []string{
		k.pending, k.processing, k.deadlines, k.tokens, k.counter, k.counts, k.refs, k.ids, k.backrefs,
		k.completed, k.failed, k.dlq, k.places, k.records, k.gone, stream, k.hint,
	}
	args, order, err := s.args(r)
	if err != nil {
		return nil, err
	}
	text, err := s.timers.RunText(ctx, exchangeScript, keys, args...)
	if err != nil {
		return nil, fmt.Errorf("exchange on queue %q: %w", s.Name(), err)
	}
	reply, err := s.parse(text, r.LeaseTTL)
	if err != nil {
		return nil, fmt.Errorf("exchange on queue %q: %w", s.Name(), err)
	}
	scripts.Reorder(reply, order)
	return reply, nil
}

// verdicts is the order in which the script takes settlements.
var verdicts = [...]exchange.Verdict{exchange.Ack, exchange.Nack, exchange.Bury, exchange.Fail, exchange.Release}

// args lays out the request as lua/exchange.lua says; order gives the
// place in the request of each settlement there.
func (s *Source) args(r *exchange.Request) (args []any, order []int, err error) {
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
	for _, verdict := range verdicts {
		n := len(order)
		for i := range r.Settle {
			if r.Settle[i].Verdict == verdict {
				order = append(order, i)
			}
		}
		args = append(args, len(order)-n)
	}
	args = append(args, len(r.Extend), 0)
	raws := len(args) - 1
	tokens := make([]any, 0, len(order)+len(r.Extend))
	put := func(h exchange.Held) {
		token, message, ok := strings.Cut(string(h.Token), " ")
		if !ok {
			err = fmt.Errorf("%w: token of %q is no lease of a queue", redisops.ErrInvalid, h.ID)
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
			args = append(args, scripts.Clip(v.Reason, scripts.MaxReason))
		}
	}
	fixed := len(args)
	for place, i := range order {
		if v := r.Settle[i].Verdict; s.keeps(v) {
			_, message, _ := strings.Cut(string(r.Settle[i].Token), " ")
			if payload, ok := slowPayload(message); ok {
				args = append(args, place, payload)
			}
		}
	}
	args[raws] = (len(args) - fixed) / 2
	return args, order, err
}

// keeps reports whether the script needs the payload of a message that is
// settled so.
func (s *Source) keeps(v exchange.Verdict) bool {
	switch v {
	case exchange.Ack:
		return s.opts.Completed > 0
	case exchange.Fail, exchange.Nack:
		return s.opts.Failed > 0
	default:
		return v == exchange.Bury
	}
}

// slowPayload is the payload of a message that a script would take long to
// decode.
func slowPayload(message string) ([]byte, bool) {
	if len(message) < 1<<10 {
		return nil, false
	}
	_, payload, err := stored.Decode(message)
	return payload, err == nil
}

// parse reads the answer of lua/exchange.lua. Tokens share the reply's
// memory. What is delivered at most once is good for ttl: nobody takes it away.
func (s *Source) parse(text string, ttl time.Duration) (*exchange.Reply, error) {
	r := answerReader{scripts.Reader{Text: text}}
	out := new(exchange.Reply)
	now, end := r.Score(), r.Score()
	out.Now, out.Remaining = scripts.Instant(now), scripts.Between(now, end)
	if s.opts.AtMostOnce {
		out.Remaining = ttl
	}
	out.Next = time.Duration(min(r.Integer(), int(scripts.MaxMicros))) * time.Microsecond
	out.Orphans = r.Integer() != 0
	refused, buried, leases := r.Count(), r.Count(), r.Count()
	for range refused {
		out.Refused = append(out.Refused, r.Refusal())
	}
	for range buried {
		out.Buried = append(out.Buried, r.queueBurial())
	}
	if leases > 0 && r.Err == nil {
		out.Leases = make([]exchange.Lease, leases)
	}
	for i := range out.Leases {
		out.Leases[i] = r.message(out.Now)
	}
	if r.Err == nil && r.Text != "" {
		r.Fail("more than announced")
	}
	if r.Err != nil {
		return nil, r.Err
	}
	return out, nil
}

const tooManyDeliveries = "too many deliveries"

// answerReader reads the parts of an exchange's answer.
type answerReader struct{ scripts.Reader }

func (r *answerReader) queueBurial() exchange.Burial {
	b := exchange.Burial{Index: r.Integer(), Entry: strings.Clone(r.Word()), At: scripts.Instant(r.Score()), Claims: r.Integer()}
	idBytes, payloadBytes := r.Count(), r.Count()
	b.ID = strings.Clone(r.Take(idBytes))
	b.Activation = publishedAt(b.ID, b.At)
	b.Failures = b.Claims
	if payload := r.Take(payloadBytes); b.Index < 0 {
		b.Index, b.Payload, b.Reason = -1, []byte(payload), tooManyDeliveries
	}
	return b
}

func (r *answerReader) message(now time.Time) exchange.Lease {
	token := r.Word()
	l := exchange.Lease{Claims: r.Integer()}
	value := r.Take(r.Count())
	l.Failures = max(l.Claims-1, 0)
	l.Token = exchange.Token(token + " " + value)
	var err error
	if l.ID, l.Payload, err = stored.Decode(value); err != nil {
		l.Fault = err.Error()
	}
	if layout.FaultOf(l.ID) != "" {
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

// healSteps bounds the script calls of one Heal.
const healSteps = 100

// Heal brings what is known of the dead letters in line with their list, from
// which Python takes and to which it adds, and answers how many records of
// letters that are gone it has removed. What is left after 100 steps is for the
// next call.
func (s *Source) Heal(ctx context.Context) (removed int, err error) {
	for range healSteps {
		list, err := s.timers.RunList(ctx, 2, healScript, []string{s.keys.dlq, s.keys.places, s.keys.records})
		if err != nil {
			return removed, fmt.Errorf("heal queue %q: %w", s.Name(), err)
		}
		values, err := scripts.Texts(list)
		if err != nil {
			return removed, err
		}
		n, err := strconv.Atoi(values[0])
		if err != nil {
			return removed, fmt.Errorf("%w: %w", scripts.ErrReply, err)
		}
		if removed += n; values[1] == "0" {
			break
		}
	}
	return removed, nil
}
