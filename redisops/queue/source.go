package queue

import (
	"context"
	"crypto/sha1" //nolint:gosec // a name for what has none, not a secret
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/wakebell/wakebell/internal/queuemessage"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// SourceOptions bound a source; the zero value takes the defaults.
type SourceOptions struct {
	// MaxBytes is the maximum size of the messages in one reply, default 256 KiB;
	// the first lease passes in any case.
	MaxBytes int
	// MaxDeliveries is how many times a message is delivered; the next claim
	// dead-letters it with the reason "too many deliveries". 0 means no bound.
	MaxDeliveries int
	// DeadCap is how many dead letters are stored; the oldest are removed first, at
	// most 500 more in one step than it adds. 0 means no cap.
	DeadCap int64
	// Completed and Failed are how many payloads are stored of handled messages,
	// and of messages that ended with [exchange.Fail]. 0 means none.
	Completed, Failed int64
	// AtMostOnce gives messages no visibility timeout: a message is lost if a crash
	// interrupts its handler.
	AtMostOnce bool
	// FreeKeys releases the deduplication key of a message that fails permanently,
	// if the publisher stored the key (OwnKeys).
	FreeKeys bool
}

// Source is the source from which the poller of a queue claims leases.
type Source struct {
	*Queue
	shard string
	opts  SourceOptions

	mu     sync.Mutex
	cursor string // where mendLeases continues; empty: at the beginning
}

// Shard is like [timers.TimerSource.Shard].
func (s *Source) Shard() string { return s.shard }

// Source returns the source of a queue for its poller.
func (q *Queue) Source(o SourceOptions) *Source {
	if o.MaxBytes <= 0 {
		o.MaxBytes = layout.DefaultReplyBytes
	}
	o.MaxDeliveries, o.DeadCap = max(o.MaxDeliveries, 0), max(o.DeadCap, 0)
	o.Completed, o.Failed = max(o.Completed, 0), max(o.Failed, 0)
	return &Source{Queue: q, shard: q.timers.ShardOf(q.keys.pending), opts: o}
}

// Exchange runs one exchange; see package exchange for its contract. Errors are
// those of [timers.TimerSource.Exchange]. Many settlements are sent in several
// steps; the last step extends and claims. Each step of a retry returns its first
// answer.
//
// A lease's token contains the message as it is stored, because that is its
// identity. Failures are the earlier deliveries, because Redis does not distinguish
// crashes from failures.
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
			s.remember(ctx)
			add(reply, all, len(r.Settle)-n)
			return reply, nil
		}
		part := exchange.Request{
			Incarnation: r.Incarnation, Stream: r.Stream, Sequence: r.Sequence, LeaseTTL: r.LeaseTTL, Flow: r.Flow,
			Settle: rest.Settle[:n],
		}
		reply, err := s.exchange(ctx, &part, s.keys.stream(r.Incarnation, r.Stream)+":"+strconv.Itoa(step))
		if err != nil {
			return nil, err
		}
		add(reply, all, len(r.Settle)-len(rest.Settle))
		all.Refused, all.DeadLettered, rest.Settle = reply.Refused, reply.DeadLettered, rest.Settle[n:]
	}
}

const (
	// stepSettlements and stepBytes bound the settlements of one script call: a
	// dead letter takes 30 µs, and each byte of a large message is hashed and
	// copied several times.
	stepSettlements = 150
	stepBytes       = 1 << 20
)

// fitting returns how many of the first settlements one script call carries.
func fitting(list []exchange.Settlement) int {
	size := 0
	for i := range min(len(list), stepSettlements) {
		if size += len(list[i].Token); i > 0 && size > stepBytes {
			return i
		}
	}
	return min(len(list), stepSettlements)
}

// add puts the results of earlier steps before those of this reply, whose
// settlements begin at index from.
func add(reply, earlier *exchange.Reply, from int) {
	for i := range reply.Refused {
		reply.Refused[i].Index += from
	}
	for i := range reply.DeadLettered {
		if reply.DeadLettered[i].Index >= 0 {
			reply.DeadLettered[i].Index += from
		}
	}
	reply.Refused = append(earlier.Refused, reply.Refused...)
	reply.DeadLettered = append(earlier.DeadLettered, reply.DeadLettered...)
}

// exchange runs one script call; stream is the key of its stored answer.
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
	script := exchangeScript
	if limits := r.Flow.Limits(); limits.On() {
		script, keys, args = exchangeFlowScript, append(keys, k.flow), append(args, scripts.FlowWords(r))
	}
	text, err := s.timers.RunText(ctx, script, keys, args...)
	if err != nil {
		return nil, fmt.Errorf("exchange on queue %q: %w", s.Name(), err)
	}
	reply, err := s.parse(text, r.LeaseTTL, &r.Flow)
	if err != nil {
		return nil, fmt.Errorf("exchange on queue %q: %w", s.Name(), err)
	}
	scripts.Reorder(reply, order)
	return reply, nil
}

// verdicts is the order in which the script expects settlements.
var verdicts = [...]exchange.Verdict{exchange.Ack, exchange.Nack, exchange.DeadLetter, exchange.Fail, exchange.Release}

// args lays out the request as lua/exchange.lua expects; order maps the settlements
// there to indices of the request.
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
			err = fmt.Errorf("%w: token of %q is not a lease of a queue", wakebelltype.ErrInvalid, h.ID)
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
		if v := r.Settle[i]; v.Verdict == exchange.DeadLetter {
			args = append(args, text.Cut(v.Reason, scripts.MaxReason))
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

// keeps reports whether the script needs the payload of a message with this
// verdict.
func (s *Source) keeps(v exchange.Verdict) bool {
	switch v {
	case exchange.Ack:
		return s.opts.Completed > 0
	case exchange.Fail, exchange.Nack:
		return s.opts.Failed > 0
	default:
		return v == exchange.DeadLetter
	}
}

// slowPayload returns the payload of a message that is slow to decode in a script.
func slowPayload(message string) ([]byte, bool) {
	if len(message) < 1<<10 {
		return nil, false
	}
	m, err := queuemessage.Decode(message)
	return m.Payload, err == nil
}

// parse reads the reply of lua/exchange.lua. The result does not retain the memory
// of the text. A message that is delivered at most once is valid for ttl, because
// no other consumer can claim it.
func (s *Source) parse(text string, ttl time.Duration, flow *exchange.Flow) (*exchange.Reply, error) {
	r := answerReader{scripts.Reader{Text: text}}
	out := new(exchange.Reply)
	now, end := r.Score(), r.Score()
	out.Now, out.Remaining = scripts.Instant(now), scripts.Between(now, end)
	if s.opts.AtMostOnce {
		out.Remaining = ttl
	}
	out.Next = time.Duration(min(r.Integer(), int(scripts.MaxMicros))) * time.Microsecond
	out.Orphans = r.Integer() != 0
	refused, dead, leases := r.Count(), r.Count(), r.Count()
	held, charge := r.Integer(), r.Word()
	out.Held = time.Duration(min(held, int(scripts.MaxMicros))) * time.Microsecond
	if held < 0 {
		r.Fail("a bad first line")
	}
	for range refused {
		out.Refused = append(out.Refused, r.Refusal())
	}
	for range dead {
		out.DeadLettered = append(out.DeadLettered, r.deadLetter())
	}
	if leases > 0 && r.Err == nil {
		out.Leases = make([]exchange.Lease, leases)
	}
	for i := range out.Leases {
		out.Leases[i] = r.message(out.Now)
	}
	r.Charges(charge, out.Leases, flow)
	if r.Err == nil && r.Text != "" {
		r.Fail("more than announced")
	}
	if r.Err != nil {
		return nil, r.Err
	}
	return out, nil
}

const tooManyDeliveries = "too many deliveries"

// answerReader reads the parts of an exchange's reply.
type answerReader struct{ scripts.Reader }

func (r *answerReader) deadLetter() exchange.DeadLettered {
	b := exchange.DeadLettered{Index: r.Integer(), Entry: strings.Clone(r.Word()), At: scripts.Instant(r.Score()), Claims: r.Integer()}
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
	m, err := queuemessage.Decode(value)
	if err != nil {
		l.Fault = err.Error()
	}
	l.ID, l.Payload, l.Headers = strings.Clone(m.ID), m.Payload, m.Headers
	if layout.FaultOf(l.ID) != "" {
		sum := sha1.Sum([]byte(value)) //nolint:gosec // as queue.lua names it
		l.ID = hex.EncodeToString(sum[:])
	}
	l.Activation = publishedAt(l.ID, now)
	return l
}

// publishedAt reads the instant of an id that is a UUID of version 7, as Wakebell
// generates them. For other ids it returns now.
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
