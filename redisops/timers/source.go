package timers

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

const (
	defaultReplyBytes = 256 << 10
	maxWant           = 10_000
	claimMost         = 500  // leases of one exchange: more of them would hold up Redis
	maxError          = 256  // bytes of a nack's error that are kept
	maxReason         = 1024 // bytes of a dead letter's reason
)

// SourceOptions bound a source; the zero value takes the defaults.
type SourceOptions struct {
	// MaxBytes is the most payload in one reply, default 256 KiB; the first
	// lease passes in any case.
	MaxBytes int
	// MaxClaims is how many times a timer may be claimed without a verdict; one
	// claim more makes it a dead letter, "never settled". 0: no such bound.
	MaxClaims int
	// DeadCap is about how many dead letters are kept, the oldest go first. 0:
	// all of them.
	DeadCap int64
}

// TimerSource is a topic as its poller sees it.
type TimerSource struct {
	timers *Timers
	topic  string
	shard  string
	keys   topicKeys
	opts   SourceOptions

	empty atomic.Bool // it had no timers when Glance last asked

	mu    sync.Mutex // held by Heal
	sweep [2]sweep   // of the payloads, of the lease records
}

// Source gives the view of a topic that a poller works on.
func (s *Timers) Source(topic string, o SourceOptions) *TimerSource {
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultReplyBytes
	}
	o.MaxClaims, o.DeadCap = max(o.MaxClaims, 0), max(o.DeadCap, 0)
	k := s.keys.of(topic)
	return &TimerSource{timers: s, topic: topic, shard: s.shardOf(k.timeline), keys: k, opts: o}
}

// Name is the topic.
func (t *TimerSource) Name() string { return t.topic }

// Shard names the server of a Cluster that kept the topic when Check was last
// called; empty where there is but one. It is a group that fails together as a
// rule, so one that has moved since does no harm.
func (t *TimerSource) Shard() string { return t.shard }

// Exchange runs one exchange; see package exchange for its contract. Errors
// wrap [ErrInvalid] (nothing was sent), [exchange.ErrStale] (nothing was done)
// or [exchange.ErrUnavailable] (it may have been done: send it again).
func (t *TimerSource) Exchange(ctx context.Context, r *exchange.Request) (*exchange.Reply, error) {
	if err := t.check(r); err != nil {
		return nil, err
	}
	keys := []string{
		t.keys.timeline, t.keys.payloads, t.keys.leases, t.keys.dead,
		t.keys.stream(r.Incarnation, r.Stream), t.keys.hint,
	}
	text, err := t.timers.RunText(ctx, exchangeScript, keys, t.args(r)...)
	if err != nil {
		return nil, fmt.Errorf("exchange on %q: %w", t.topic, err)
	}
	reply, err := parseReply(text)
	if err != nil {
		return nil, fmt.Errorf("exchange on %q: %w", t.topic, err)
	}
	if len(reply.Refused)+len(reply.Buried) > 0 {
		restoreOrder(r.Settle, reply)
	}
	return reply, nil
}

func (t *TimerSource) check(r *exchange.Request) error {
	if err := checkTopic(t.topic); err != nil {
		return err
	}
	return checkRequest(r, exchange.Release)
}

// checkRequest checks what all sources ask for; last is the last verdict that
// this one knows.
func checkRequest(r *exchange.Request, last exchange.Verdict) error {
	switch {
	case r.Incarnation == "":
		return fmt.Errorf("%w: incarnation is empty", redisops.ErrInvalid)
	case r.Stream < 0:
		return fmt.Errorf("%w: stream: %d, want at least 0", redisops.ErrInvalid, r.Stream)
	case r.Sequence < 1 || r.Sequence > 1<<53:
		return fmt.Errorf("%w: sequence: %d, want 1 to 2^53", redisops.ErrInvalid, r.Sequence)
	case r.Want < 0 || r.Want > maxWant:
		return fmt.Errorf("%w: want: %d, want 0 to %d", redisops.ErrInvalid, r.Want, maxWant)
	case r.LeaseTTL < time.Millisecond && (r.Want > 0 || len(r.Extend) > 0):
		return fmt.Errorf("%w: lease ttl: %v, want at least 1ms", redisops.ErrInvalid, r.LeaseTTL)
	}
	for i := range r.Settle {
		if v := r.Settle[i].Verdict; v < exchange.Ack || v > last {
			return fmt.Errorf("%w: settlement %d: verdict %d is unknown", redisops.ErrInvalid, i, v)
		}
	}
	return nil
}

// args lays out the request as lua/exchange.lua says. Pointers are passed where
// they save an allocation.
func (t *TimerSource) args(r *exchange.Request) []any {
	var count [exchange.Release + 1]int
	for i := range r.Settle {
		count[r.Settle[i].Verdict]++
	}
	nacks, buries := count[exchange.Nack], count[exchange.Bury]
	total := len(r.Settle) + len(r.Extend)
	const fixed = 12
	args := make([]any, fixed+2*total, fixed+2*total+2*nacks+buries)
	for i, v := range [fixed]any{
		r.Sequence, scripts.DelayText(r.LeaseTTL), min(r.Want, claimMost), t.opts.MaxBytes, t.opts.MaxClaims, t.opts.DeadCap,
		count[exchange.Ack], nacks, buries, count[exchange.Release], len(r.Extend), t.timers.maxPayload(),
	} {
		args[i] = v
	}
	at := fixed
	put := func(h *exchange.Held) {
		args[at], args[at+total] = &h.ID, (*string)(&h.Token)
		at++
	}
	for verdict := exchange.Ack; verdict <= exchange.Release; verdict++ {
		for i := range r.Settle {
			if r.Settle[i].Verdict == verdict {
				put(&r.Settle[i].Held)
			}
		}
	}
	for i := range r.Extend {
		put(&r.Extend[i])
	}
	if nacks+buries > 0 {
		args = appendReasons(args, r.Settle)
	}
	return args
}

func appendReasons(args []any, settle []exchange.Settlement) []any {
	for i := range settle {
		if settle[i].Verdict == exchange.Nack {
			args = append(args, scripts.DelayText(settle[i].Delay))
		}
	}
	for i := range settle {
		if settle[i].Verdict == exchange.Nack {
			args = append(args, clip(settle[i].Reason, maxError))
		}
	}
	for i := range settle {
		if settle[i].Verdict == exchange.Bury {
			failed := "0"
			if settle[i].Failed {
				failed = "1"
			}
			args = append(args, failed+clip(settle[i].Reason, maxReason))
		}
	}
	return args
}

// clip shortens a text to n bytes without cutting a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.ToValidUTF8(s[:n], "")
}

// restoreOrder turns the script's indices, which count by verdict, into those of
// the request.
func restoreOrder(settle []exchange.Settlement, reply *exchange.Reply) {
	order := make([]int, 0, len(settle))
	for verdict := exchange.Ack; verdict <= exchange.Release; verdict++ {
		for i := range settle {
			if settle[i].Verdict == verdict {
				order = append(order, i)
			}
		}
	}
	reorder(reply, order)
}

// reorder turns indices of an order into what stands there in it.
func reorder(reply *exchange.Reply, order []int) {
	for i := range reply.Refused {
		if at := reply.Refused[i].Index; at < len(order) {
			reply.Refused[i].Index = order[at]
		}
	}
	for i := range reply.Buried {
		if at := reply.Buried[i].Index; at >= 0 && at < len(order) {
			reply.Buried[i].Index = order[at]
		}
	}
}
