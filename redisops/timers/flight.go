package timers

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/usercode"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// flight is what is sent at once: one call for each of its topics.
type flight struct {
	calls   [][]*waiter
	load    load
	waiting atomic.Int32 // callers whose context has not ended
	cancel  context.CancelFunc
}

// take makes a flight of what waits; nil: nothing does. mu is held.
func (to *outlet) take() *flight {
	f := &flight{}
	for n := len(to.lines); n > 0 && len(f.calls) < maxScripts; n-- { // each topic once
		l := to.lines[0]
		call := l.take(f)
		if len(call) == 0 && len(l.waiting) > 0 { // the next flight begins with it
			break
		}
		to.lines, l.queued = to.lines[1:], false
		if len(call) > 0 {
			f.calls = append(f.calls, call)
		}
		if len(l.waiting) > 0 {
			l.queue()
		}
	}
	if len(f.calls) == 0 {
		return nil
	}
	return f
}

// take removes those waiting schedules that one call of a flight can carry: with the same
// fence, distinct ids, and room in the flight.
func (l *line) take(f *flight) (call []*waiter) {
	if len(l.waiting) == 0 {
		return nil
	}
	waiting, ids := l.waiting, map[string]struct{}{}
	l.waiting = nil
	for _, w := range waiting {
		p := w.part
		if len(call) > 0 && (!p.fence.equal(call[0].part.fence) || p.hasAny(ids)) || !f.load.join(&p.load) {
			l.waiting = append(l.waiting, w)
			continue
		}
		if len(waiting) > 1 {
			for i := range p.entries {
				ids[p.entries[i].ID] = struct{}{}
			}
		}
		w.flight = f
		f.waiting.Add(1)
		call = append(call, w)
	}
	return call
}

// hasAny reports whether an entry has one of the ids.
func (p *part) hasAny(ids map[string]struct{}) bool {
	return slices.ContainsFunc(p.entries, func(e Entry) bool {
		_, has := ids[e.ID]
		return has
	})
}

// fly makes the calls of a flight, in one pipeline if there are several, and gives each
// waiter its part of the answer.
func (s *Timers) fly(ctx context.Context, f *flight, to *outlet) {
	defer s.finish(to)
	defer f.cancel()
	parts, calls := make([]*part, len(f.calls)), make([]scripts.Call, len(f.calls))
	for i, call := range f.calls {
		first := call[0].part
		p := &part{topic: first.topic, fence: first.fence}
		for _, w := range call {
			p.load.join(&w.part.load)
		}
		p.entries = make([]Entry, 0, p.load.entries)
		for _, w := range call {
			p.entries = append(p.entries, w.part.entries...)
		}
		parts[i], calls[i] = p, s.compose(p)
	}
	var replies []any
	var errs []error
	err := usercode.Called("a schedule", func() error { // of a hook of the client, for instance
		replies, errs = s.TryAll(ctx, calls)
		return nil
	})
	if err != nil {
		replies, errs = make([]any, len(calls)), slices.Repeat([]error{err}, len(calls))
	}
	var others sync.WaitGroup
	for i, call := range f.calls {
		land := func() { s.land(ctx, call, parts[i], replies[i], errs[i]) }
		if errs[i] == nil {
			land()
		} else {
			others.Go(land) // it may call the script again
		}
	}
	others.Wait()
}

// land gives each waiter of a call its part of the answer.
func (s *Timers) land(ctx context.Context, call []*waiter, p *part, reply any, err error) {
	var answers []wakebelltype.Scheduled
	err = usercode.Called("a schedule", func() error {
		text, err := scripts.AsText(reply, err)
		answers, err = s.answered(ctx, p, text, 0, err)
		return err
	})
	for _, w := range call {
		if w.err = err; err == nil {
			n := len(w.part.entries)
			w.answer, answers = answers[:n:n], answers[n:]
		}
		close(w.done)
	}
}

const (
	// MaxReplicas is the maximum number of replicas that a schedule can wait for.
	MaxReplicas = 100
	// MaxReplicaTimeout is the longest time that a schedule can wait for replicas.
	MaxReplicaTimeout = time.Minute

	// waitSlack is how late Redis may answer a WAIT, because it checks its blocked
	// clients ten times a second.
	waitSlack = 500 * time.Millisecond
)

// runConfirmed runs a script, then WAIT, and returns how many replicas have
// confirmed the writes. Both are sent in one pipeline, because WAIT covers the
// writes of its own connection only.
func (s *Timers) runConfirmed(ctx context.Context, c load, script *redis.Script, keys []string, args ...any) (reply string, confirmed int, err error) {
	if deadline, ok := ctx.Deadline(); ok {
		c.timeout = max(min(c.timeout, time.Until(deadline)), time.Millisecond)
	}
	rdb, err := s.master(ctx, keys[0])
	if err != nil {
		return "", 0, scripts.Wrap(ctx, keys, err)
	}
	if read := rdb.Options().ReadTimeout; read > 0 { // without a read timeout there is nothing to extend
		rdb = rdb.WithTimeout(read + c.timeout + waitSlack)
	}
	ran, waited := pipeWait(ctx, rdb, c, func(p redis.Pipeliner) *redis.Cmd { return script.EvalSha(ctx, p, keys, args...) })
	if redis.HasErrorPrefix(ran.Err(), "NOSCRIPT") {
		ran, waited = pipeWait(ctx, rdb, c, func(p redis.Pipeliner) *redis.Cmd { return script.Eval(ctx, p, keys, args...) })
	}
	if reply, err = ran.Text(); err != nil {
		return "", 0, s.Moved(ctx, scripts.Wrap(ctx, keys, err))
	}
	if confirmed, err = waited.Int(); err != nil {
		return "", 0, fmt.Errorf("stored, but not confirmed by replicas: %w", scripts.Wrap(ctx, nil, err))
	}
	return reply, confirmed, nil
}

func pipeWait(ctx context.Context, rdb *redis.Client, c load, run func(redis.Pipeliner) *redis.Cmd) (ran, waited *redis.Cmd) {
	pipe := rdb.Pipeline()
	ran, waited = run(pipe), pipe.Do(ctx, "WAIT", c.replicas, c.timeout.Milliseconds())
	_, _ = pipe.Exec(ctx) // each reply has its own error
	return ran, waited
}

// master returns the client of the server that has a key.
func (s *Timers) master(ctx context.Context, key string) (*redis.Client, error) {
	switch rdb := s.RDB.(type) {
	case *redis.Client:
		return rdb, nil
	case *redis.ClusterClient:
		return rdb.MasterForKey(ctx, key)
	case *redis.Ring:
		return rdb.GetShardClientForKey(key)
	default:
		return nil, fmt.Errorf("%w: replicas cannot be asked through a %T", wakebelltype.ErrUnsupported, s.RDB)
	}
}
