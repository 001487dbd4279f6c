package timers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

const (
	claimMost = 200 // leases of one exchange; more would block Redis for too long
	aloneFrom = 32  // settlements and extensions of an exchange that shares no pipeline
	maxError  = 256 // bytes of a nack's error that are stored
)

// SourceOptions bound a source; the zero value takes the defaults.
type SourceOptions struct {
	// MaxBytes is the maximum payload of one reply in bytes, default 256 KiB; the
	// first lease passes in any case.
	MaxBytes int
	// MaxClaims is how many claims of a timer may end without a verdict; the next
	// claim dead-letters it with the reason "never settled". 0 means no bound.
	MaxClaims int
	// DeadCap is about how many dead letters are stored; the oldest are removed
	// first. 0 means no cap.
	DeadCap int64
	// SkipFailed lets the next timer of a key run while one waits for its retry.
	SkipFailed bool
	// KeyWeights are how many times as many timers of a class of keys start in a turn, with
	// FairKeys, as lua/fair_turns.lua reads them: "gold=10,silver=3". Others have 1.
	KeyWeights string
}

// TimerSource is the source from which the poller of a topic claims leases.
type TimerSource struct {
	timers *Timers
	topic  string
	shard  string
	opts   SourceOptions

	timeline string                    // of the keys, for peeks
	busy     atomic.Pointer[TopicKeys] // those of exchanges; nil: idle topics keep none

	caller scripts.Caller
	denied atomic.Int64 // when the user had no right to give the settings to a script, in ns since 1970; 0: never
	byKey  atomic.Bool  // timers of the topic had keys at the last SweepKeys
	empty  atomic.Bool  // the topic had no timers at the last Peek

	mu    sync.Mutex // held by RemoveOrphans
	sweep [3]Sweep   // of the payloads, of the lease records, of the keys of timers
}

// Source returns the source of a topic for its poller.
func (s *Timers) Source(topic string, o SourceOptions) *TimerSource {
	if o.MaxBytes <= 0 {
		o.MaxBytes = layout.DefaultReplyBytes
	}
	o.MaxClaims, o.DeadCap = max(o.MaxClaims, 0), max(o.DeadCap, 0)
	timeline := s.keys.key(s.keys.Timeline, topic)
	return &TimerSource{timers: s, topic: topic, shard: s.ShardOf(timeline), timeline: timeline, opts: o}
}

// keys returns the keys of the topic.
func (t *TimerSource) keys() *TopicKeys {
	if k := t.busy.Load(); k != nil {
		return k
	}
	k := t.timers.keys.Of(t.topic)
	return &k
}

// Name returns the topic.
func (t *TimerSource) Name() string { return t.topic }

// Shard names the server of a Cluster that had the topic at the last call of Check;
// empty if there is only one. Topics of a shard usually fail together; a topic that
// has moved since does no harm.
func (t *TimerSource) Shard() string { return t.shard }

// Exchange runs one exchange; see package exchange for its contract. Errors wrap
// [wakebelltype.ErrInvalid] (nothing was sent), [exchange.ErrStale] (nothing was done) or
// [exchange.ErrUnavailable] (it may have been done; send it again).
func (t *TimerSource) Exchange(ctx context.Context, r *exchange.Request) (*exchange.Reply, error) {
	if err := t.check(r); err != nil {
		return nil, err
	}
	reply, err := t.claim(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("exchange on %q: %w", t.topic, err)
	}
	if len(reply.Refused)+len(reply.DeadLettered) > 0 {
		restoreOrder(r.Settle, reply)
	}
	if err := t.findCancelled(ctx, r, reply); err != nil {
		return nil, fmt.Errorf("exchange on %q: %w", t.topic, err)
	}
	return reply, nil
}

// claim runs the exchange, and reads the payloads that its answer left out.
func (t *TimerSource) claim(ctx context.Context, r *exchange.Request) (*exchange.Reply, error) {
	reply, apart, err := t.call(ctx, r, t.fetchFrom())
	if err != nil || !apart {
		return reply, err
	}
	if err = t.fetch(ctx, r, reply); errors.Is(err, errNotApart) {
		reply, _, err = t.call(ctx, r, 0) // answered again, with the payloads
	}
	return reply, err
}

// call runs the script once. Apart reports that its answer has no payloads, because
// they have at least fetchFrom bytes; 0 means never.
func (t *TimerSource) call(ctx context.Context, r *exchange.Request, fetchFrom int) (reply *exchange.Reply, apart bool, err error) {
	asks := t.asksControl()
	if reply, apart, err = t.run(ctx, r, fetchFrom, asks); scripts.IsDenied(err) {
		return t.runDenied(ctx, r, fetchFrom, asks)
	}
	return reply, apart, err
}

// runDenied runs the script without the keys to which the user may have no right.
func (t *TimerSource) runDenied(ctx context.Context, r *exchange.Request, fetchFrom int, asks bool) (reply *exchange.Reply, apart bool, err error) {
	err = t.timers.orKeyless(func() error {
		reply, apart, err = t.run(ctx, r, fetchFrom, asks)
		if asks && scripts.IsDenied(err) {
			if reply, apart, err = t.run(ctx, r, fetchFrom, false); !scripts.IsDenied(err) {
				t.denied.Store(time.Now().UnixNano())
			}
		}
		return err
	})
	return reply, apart, err
}

// run sends the script, with the key of the settings for all nodes if asks is true.
func (t *TimerSource) run(ctx context.Context, r *exchange.Request, fetchFrom int, asks bool) (reply *exchange.Reply, apart bool, err error) {
	of := t.keys()
	t.busy.Store(of)
	keys := []string{of.Timeline, of.Payloads, of.Leases, of.Dead, of.Stream(r.Incarnation, r.Stream), of.Hint}
	byKey := r.Flow.ByKey() || t.byKey.Load()
	script, args := exchangeScript, t.args(r, fetchFrom, t.known(r, asks))
	if byKey || r.Flow.On() {
		script, keys = exchangeFlowScript, append(keys, of.Flow)
		if byKey {
			t.byKey.Store(true)
			keys, args = append(keys, of.order()...), append(args, t.byKeyText(r))
			switch {
			case r.Flow.Fair():
				script = exchangeFairScript
				if r.Flow.KeyRateLimit > 0 {
					script, keys = exchangeFairRatesScript, append(keys, of.KeyRates)
				}
				keys = append(keys, of.KeyTurns)
			case r.Flow.KeyRateLimit > 0:
				script, keys = exchangeRatesScript, append(keys, of.KeyRates)
			case r.Flow.Limits().On():
				script = exchangeBothScript
			default:
				script = exchangeKeysScript
			}
		}
		args = append(args, scripts.FlowWords(r))
	}
	switch { // dead letters of timers that have keys nevertheless; see Timers.orderKeys
	case byKey:
	case t.timers.keyless.Load():
		keys = append(keys, of.Leases)
	default:
		keys = append(keys, of.TimerKeys)
	}
	keys = append(keys, t.controlKey(asks))
	alone := t.timers.NoCoalescing || len(r.Settle)+len(r.Extend) >= aloneFrom
	answer, sent, err := t.timers.RunBatched(ctx, t.shard, &t.caller, alone, script, keys, args...)
	packed, err := scripts.AsText(answer, err)
	if err != nil {
		return nil, false, err
	}
	if reply, apart, err = parseReply(packed, &r.Flow); err == nil {
		reply.Sent = sent
	}
	return reply, apart, err
}

func (t *TimerSource) check(r *exchange.Request) error {
	if err := layout.CheckTopic(t.topic); err != nil {
		return err
	}
	return scripts.CheckRequest(r, exchange.Release)
}

// args lays out the request as lua/exchange.lua expects.
// Pointers are passed to save allocations.
func (t *TimerSource) args(r *exchange.Request, fetchFrom int, known any) []any {
	var count [exchange.Release + 1]int
	for i := range r.Settle {
		count[r.Settle[i].Verdict]++
	}
	nacks, dead := count[exchange.Nack], count[exchange.DeadLetter]
	total := len(r.Settle) + len(r.Extend)
	const fixed = 15
	args := make([]any, fixed+2*total, fixed+2*total+2*nacks+dead)
	for i, v := range [fixed]any{
		r.Sequence, scripts.DelayText(r.LeaseTTL), min(r.Want, claimMost), t.opts.MaxBytes, t.opts.MaxClaims, t.opts.DeadCap,
		count[exchange.Ack], nacks, dead, count[exchange.Release], len(r.Extend), t.timers.maxPayload(), fetchFrom, scripts.DelayText(r.Ahead), known,
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
	if nacks+dead > 0 {
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
			args = append(args, mark(!settle[i].Snoozed)+text.Cut(settle[i].Reason, maxError))
		}
	}
	for i := range settle {
		if settle[i].Verdict == exchange.DeadLetter {
			args = append(args, mark(settle[i].Failed)+text.Cut(settle[i].Reason, scripts.MaxReason))
		}
	}
	return args
}

func mark(failed bool) string {
	if failed {
		return "1"
	}
	return "0"
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
	scripts.Reorder(reply, order)
}

// Snoozes says that timers can be snoozed.
func (t *TimerSource) Snoozes() bool { return true }
