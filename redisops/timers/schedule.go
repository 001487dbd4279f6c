package timers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/internal/usercode"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	policyCodes  = "rked"     // the code of lua/schedule.lua for each Policy, in their order
	outcomeCodes = "crspkemo" // and for each Outcome
)

// Schedule writes timers of one topic. It checks all of them before it writes the
// first: an id that is empty, too long, not UTF-8 or given twice is an error that
// wraps [wakebelltype.ErrInvalid]. See [Timers.Write].
func (s *Timers) Schedule(ctx context.Context, topic string, entries ...Entry) ([]wakebelltype.Scheduled, error) {
	b, err := checkedBatch(topic, entries)
	if err != nil {
		return nil, err
	}
	return s.Write(ctx, nil, b)
}

// Write stores the timers of a batch, at most 500 of one topic, of which 200 may have keys
// or Once, and about 1 MiB of payload in a call of the script, and returns the results in the order
// in which they were added. A call is retried while Redis is unavailable; with an idempotency
// key, it takes effect once. After an error a part of several calls may be
// stored, but after one that wraps [wakebelltype.ErrTooFewReplicas] all timers are,
// and the results are valid. After one that wraps [scripts.ErrStaleLayout] those timers
// are not stored whose results have no ID.
func (s *Timers) Write(ctx context.Context, key *Key, b Batch) ([]wakebelltype.Scheduled, error) {
	parts := b.parts(key)
	var err error
	switch len(parts) {
	case 0:
	case 1:
		err = s.send(ctx, &parts[0])
	default:
		err = s.sendAll(ctx, parts, atOnce*len(b.groups))
	}
	if err != nil {
		return nil, err
	}
	if b.after != nil {
		b.after(ctx)
	}
	switch len(parts) {
	case 0:
		return nil, nil
	case 1:
		return parts[0].done, parts[0].err
	default:
		return b.inOrder(parts)
	}
}

// send stores the timers of a part.
func (s *Timers) send(ctx context.Context, p *part) error {
	began := s.Metrics.Begin(ctx)
	err := s.Again(ctx, func() error { return s.try(ctx, p) })
	if errors.Is(err, scripts.ErrStaleLayout) { // the other parts may have other fences
		p.err, p.done = err, make([]wakebelltype.Scheduled, len(p.entries))
		return nil
	}
	if err != nil {
		err = fmt.Errorf("schedule on %q: %w", p.topic, err)
	}
	if errors.Is(err, wakebelltype.ErrTooFewReplicas) { // it is stored, so the others can be as well
		p.err, err = err, nil
	}
	if err == nil {
		s.Remember(ctx, p.topic)
	}
	s.Metrics.Sent(ctx, metrics.Schedule, p.topic, len(p.entries), began, err)
	return err
}

// try makes one call for a part, or waits for one that carries those of other callers, too.
// Timers with an idempotency key and those that wait for replicas are sent alone.
func (s *Timers) try(ctx context.Context, p *part) (err error) {
	if s.NoCoalescing || p.key != nil || p.load.replicas > 0 {
		p.done, err = s.call(ctx, p)
		return err
	}
	server := ""
	if _, several := s.RDB.(*redis.ClusterClient); several {
		server = s.ShardOf(s.keys.key(s.keys.Timeline, p.topic))
	}
	w, to := s.enter(ctx, p, server)
	if w == nil {
		defer s.finish(to)
		p.done, err = s.call(ctx, p)
		return err
	}
	select {
	case <-w.done:
		p.done = w.answer
		return w.err
	case <-ctx.Done():
		s.sender.leave(w)
		return ctx.Err()
	}
}

// atOnce is how many parts of a topic without a key are in flight: while Redis
// executes one, the next is prepared and sent. maxAtOnce bounds those of all topics.
const (
	atOnce    = 2
	maxAtOnce = 32
)

// sendAll sends parts in their order, and stops at the first that fails.
func (s *Timers) sendAll(ctx context.Context, parts []part, most int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var inFlight sync.WaitGroup
	var once sync.Once
	var failed error
	free := make(chan struct{}, min(most, maxAtOnce))
	for i := range parts {
		free <- struct{}{}
		if parts[i].key != nil { // one after the other
			inFlight.Wait()
		}
		if ctx.Err() != nil {
			break
		}
		inFlight.Go(func() {
			defer func() { <-free }()
			if err := usercode.Called("a schedule", func() error { return s.send(ctx, &parts[i]) }); err != nil {
				once.Do(func() { failed = err; cancel() })
			}
		})
	}
	inFlight.Wait()
	if failed == nil {
		failed = ctx.Err()
	}
	return failed
}

// call runs lua/schedule.lua for the timers of a part: it stores all of them in one atomic
// step, or none.
func (s *Timers) call(ctx context.Context, p *part) ([]wakebelltype.Scheduled, error) {
	c := s.compose(p)
	if p.load.replicas > 0 && p.key == nil {
		reply, confirmed, err := s.runConfirmed(ctx, p.load, c.Script, c.Keys, c.Args...)
		return s.answered(ctx, p, reply, confirmed, err)
	}
	reply, err := scripts.AsText(s.Try(ctx, c.Script, c.Keys, c.Args...))
	return s.answered(ctx, p, reply, 0, err)
}

// answered returns the results of a call after its reply.
func (s *Timers) answered(ctx context.Context, p *part, reply string, confirmed int, err error) ([]wakebelltype.Scheduled, error) {
	switch {
	case err != nil:
		return s.callOtherwise(ctx, p, err)
	case strings.HasPrefix(reply, codeKnown):
		return s.callRest(ctx, p, reply)
	}
	out, err := readScheduled(p.entries, reply, confirmed)
	if err == nil && confirmed < int(p.load.replicas) {
		err = &wakebelltype.ReplicasError{Want: int(p.load.replicas), Got: confirmed, Waited: p.load.timeout}
	}
	return out, err
}

// compose returns the call of lua/schedule.lua for the timers of a part.
func (s *Timers) compose(p *part) scripts.Call {
	const fixed = 5
	k, topic, entries := &s.keys, p.topic, p.entries
	p.fence, p.counting = s.needed(p.fence), !s.NoCounts && !s.uncounted.Load()
	n, instants := len(entries), 1
	for i := range entries {
		if entries[i].In != entries[0].In || !entries[i].At.Equal(entries[0].At) {
			instants = n
			break
		}
	}
	// Keys.Of would make all keys of the topic, an allocation for each.
	keys := append(make([]string, 0, 7), // with room for a fence
		k.key(k.Timeline, topic), k.key(k.Payloads, topic), k.key(k.Leases, topic), k.channel(k.Hint, topic), "")
	policies, onces := make([]byte, n), make([]byte, n)
	args := make([]any, fixed+2*n+instants, fixed+2*n+instants+2)
	args[0], args[1], args[2], args[3], args[4] = policies, onces, instants, "0", "0"
	if keys[4] = keys[0]; p.counting { // a key that is not used needs no right of its own
		keys[4], args[3] = k.key(k.Counts, topic), "1"
	}
	var windows []any
	for i := range entries {
		e := &entries[i]
		policies[i], onces[i] = policyCodes[e.Policy], '-'
		args[fixed+2*i], args[fixed+2*i+1] = &e.ID, e.Payload
		if i < instants {
			args[fixed+2*n+i] = instantArg(e.At, e.In)
		}
		if e.Policy == wakebelltype.PolicyDebounce {
			args = append(args, scripts.DelayMicros(e.MaxDelay))
		}
		if e.Once > 0 {
			onces[i] = 'o'
			keys = append(keys, TopicKeys{once: k.key(k.Once, topic)}.Mark(e.ID))
			windows = append(windows, scripts.DelayMicros(e.Once))
		}
	}
	args = append(args, windows...)
	script := scheduleScript
	switch {
	case p.load.keyed:
		script, args[4] = scheduleKeysScript, "1"
		keys = append(keys, k.key(k.TimerKeys, topic), k.key(k.KeyOrder, topic), k.key(k.KeyStates, topic))
		for i := range entries {
			args = append(args, entries[i].Key)
		}
	case s.keyless.Load(): // the leases, in place of a key to which the user has no right
		keys = append(keys, keys[2])
	default:
		keys = append(keys, k.key(k.TimerKeys, topic))
	}
	keys, args = scripts.WithGuards(p.fence.Guards(s.keys, topic), keys, args)
	if p.key != nil {
		script, keys, args = p.key.around(script, p.fence, s.keys.Of(topic), keys, args, n, func(i int) *string { return &entries[i].ID }, true)
	}
	return scripts.Call{Script: script, Keys: keys, Args: args}
}

// readScheduled reads the reply of lua/schedule.lua.
func readScheduled(entries []Entry, reply string, confirmed int) (out []wakebelltype.Scheduled, err error) {
	out = make([]wakebelltype.Scheduled, len(entries))
	r := scripts.Reader{Text: reply}
	if rest, all := strings.CutPrefix(reply, "a "); all { // no id existed, and all are due at once
		score, err := scripts.ReadScore(strings.TrimSuffix(rest, "\n"))
		if err != nil {
			return nil, err
		}
		at := scripts.Instant(score)
		for i := range out {
			out[i] = wakebelltype.Scheduled{ID: entries[i].ID, Due: at, Outcome: wakebelltype.OutcomeCreated, Replicas: confirmed}
		}
		return out, nil
	}
	var last string // the due instant that was read last, because those of a batch are often equal
	var due time.Time
	for i := range entries {
		outcome, word, found := r.Word(), r.Word(), r.Word()
		if word != last || due.IsZero() {
			score, err := scripts.ReadScore(word)
			if err != nil {
				return nil, err
			}
			last, due = word, scripts.Instant(score)
		}
		out[i] = wakebelltype.Scheduled{
			ID: entries[i].ID, Due: due, Replicas: confirmed, Outcome: wakebelltype.Outcome(strings.Index(outcomeCodes, outcome) + 1),
		}
		if found != "-" {
			score, err := scripts.ReadScore(found)
			if err != nil {
				return nil, err
			}
			out[i].Found = scripts.Instant(score)
		}
	}
	if r.Err == nil && r.Text != "" {
		r.Fail("more than announced")
	}
	if r.Err != nil {
		return nil, r.Err
	}
	return out, nil
}

// instantArg formats an instant, or a delay if the instant is zero, for a script.
func instantArg(at time.Time, in time.Duration) string {
	if at.IsZero() {
		return "+" + scripts.DelayMicros(in)
	}
	return scripts.ScoreText(at)
}
