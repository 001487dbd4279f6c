package scripts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/usercode"
	"github.com/wakebell/wakebell/messages/exchange"
)

// errNotSent is the error of a script that was sent to no server.
var errNotSent = fmt.Errorf("%w: it was not sent", exchange.ErrUnavailable)

// RunBatched runs a script as Run does, together with those of other topics on the same
// server. Alone is true for a script that has enough work for a round trip of its own.
// Sent is when the script was sent if it has waited for others, else zero.
func (s Runner) RunBatched(ctx context.Context, server string, from *Caller, alone bool, script *redis.Script, keys []string, args ...any) (reply any, sent time.Time, err error) {
	var delay time.Duration
	if s.Batcher != nil {
		delay = s.Batcher.delay(server, from, time.Now())
	}
	if alone || delay == 0 {
		reply, err = s.Run(ctx, script, keys, args...)
		return reply, time.Time{}, err
	}
	b := newBatched(script, keys, args)
	if s.Batcher.add(server, b) {
		s.sendAfter(ctx, server, delay)
	}
	reply, err = s.answer(ctx, server, b)
	return reply, b.sent, err
}

// sendAfter sends the scripts that wait after a delay, or when ctx ends: the others
// still wait for theirs.
func (s Runner) sendAfter(ctx context.Context, server string, delay time.Duration) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	s.sendAll(ctx, s.Batcher.take(server))
}

// sendAll sends scripts in pipelines, the first of them from this goroutine.
func (s Runner) sendAll(ctx context.Context, all []*batched) {
	ctx = context.WithoutCancel(ctx) // a caller that gives up must not fail the others
	first := all[:min(maxBatch, len(all))]
	for part := range slices.Chunk(all[len(first):], maxBatch) {
		go s.send(ctx, part)
	}
	s.send(ctx, first)
}

// send sends scripts in one pipeline and answers their callers.
func (s Runner) send(ctx context.Context, all []*batched) {
	defer func() {
		for _, b := range all {
			close(b.done)
		}
	}()
	if err := usercode.Called("a pipeline", func() error { // of a hook of the client, for instance
		s.sendPipeline(ctx, all)
		return nil
	}); err != nil {
		for _, b := range all {
			b.reply, b.err = nil, err
		}
	}
}

// sendPipeline sends scripts in one pipeline, and stores their replies.
func (s Runner) sendPipeline(ctx context.Context, all []*batched) {
	var answers []*redis.Cmd
	var err error
	if cluster, clustered := s.RDB.(*redis.ClusterClient); clustered {
		for _, b := range all {
			b.args = values(b.args)
		}
		answers, err = askSuccessors(ctx, cluster, all[0].keys[0], func(ctx context.Context, rdb redis.UniversalClient) ([]*redis.Cmd, error) {
			return runAll(ctx, rdb, all)
		})
		if errors.Is(Wrap(ctx, nil, err), exchange.ErrUnavailable) {
			s.findMasters(ctx)
		}
	} else {
		answers, _ = runAll(ctx, s.RDB, all)
	}
	for i, b := range all {
		b.reply, b.err = answers[i].Result()
	}
}

// runAll runs scripts in one pipeline. Each answer has its own error; that of the first is
// returned.
func runAll(ctx context.Context, rdb redis.UniversalClient, all []*batched) (answers []*redis.Cmd, err error) {
	answers = make([]*redis.Cmd, len(all))
	if len(all) == 1 {
		answers[0] = all[0].script.Run(ctx, rdb, all[0].keys, all[0].args...)
		return answers, answers[0].Err()
	}
	pipe := rdb.Pipeline()
	for i, b := range all {
		answers[i] = b.script.EvalSha(ctx, pipe, b.keys, b.args...)
	}
	_, _ = pipe.Exec(ctx) // each reply has its own error
	for {
		var unknown []int
		for i, answer := range answers {
			if redis.HasErrorPrefix(answer.Err(), "NOSCRIPT") {
				unknown = append(unknown, i)
			}
		}
		if len(unknown) == 0 {
			return answers, answers[0].Err()
		}
		// The server knows the script of the first from now on, often that of all.
		first := all[unknown[0]]
		answers[unknown[0]] = first.script.Eval(ctx, rdb, first.keys, first.args...)
		pipe := rdb.Pipeline()
		for _, i := range unknown[1:] {
			answers[i] = all[i].script.EvalSha(ctx, pipe, all[i].keys, all[i].args...)
		}
		if len(unknown) > 1 {
			_, _ = pipe.Exec(ctx) // as above
		}
	}
}

// answer waits for the answer to a script. A caller that gives up returns at once only
// if the script has not been sent, because the script refers to its arguments.
func (s Runner) answer(ctx context.Context, server string, b *batched) (any, error) {
	select {
	case <-b.done:
	case <-ctx.Done():
		if s.Batcher.leave(server, b) {
			return nil, ctx.Err()
		}
		<-b.done
	}
	return b.reply, s.failed(ctx, b.keys, b.err)
}

// Call is one run of a script.
type Call struct {
	Script *redis.Script
	Keys   []string
	Args   []any
}

// TryAll runs scripts once, all in one pipeline to the server of the first. Each has a reply
// or an error.
func (s Runner) TryAll(ctx context.Context, calls []Call) (replies []any, errs []error) {
	all := make([]*batched, len(calls))
	for i, c := range calls {
		all[i] = newBatched(c.Script, c.Keys, c.Args)
	}
	s.sendPipeline(ctx, all)
	replies, errs = make([]any, len(calls)), make([]error, len(calls))
	for i, b := range all {
		replies[i], errs[i] = b.reply, s.failed(ctx, b.keys, b.err)
	}
	return replies, errs
}

// RunMany makes the calls, at most about 100, all in one pipeline. Each call
// has a reply or an error. It retries while Redis answers none of them.
func (s Runner) RunMany(ctx context.Context, calls []Call) (replies []any, errs []error) {
	all := make([]*batched, len(calls))
	for i, c := range calls {
		all[i] = newBatched(c.Script, c.Keys, values(c.Args))
	}
	replies, errs = make([]any, len(calls)), make([]error, len(calls))
	answered := func(err error) bool { return !errors.Is(err, exchange.ErrUnavailable) }
	_ = s.Again(ctx, func() error { // each call has its error
		answers, _ := runAll(ctx, s.RDB, all)
		for i, answer := range answers {
			reply, err := answer.Result()
			replies[i], errs[i] = reply, Wrap(ctx, calls[i].Keys, s.Moved(ctx, err))
		}
		if len(errs) > 0 && !slices.ContainsFunc(errs, answered) {
			return errs[0]
		}
		return nil
	})
	return replies, errs
}
