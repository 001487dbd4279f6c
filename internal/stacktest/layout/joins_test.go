package layout_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/internal/testhook"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestJoinsOverTopicsAndShards has the parts of several joins on two topics, one of which gets
// shards meanwhile, like the topic of the joins.
func TestJoinsOverTopicsAndShards(t *testing.T) {
	t.Parallel()
	const joins, parts = 20, 40
	rdb := redistest.Shared(t)
	name := redistest.Name(t)
	first, second, done := wakebell.NewTopic[int](name+"-a"), wakebell.NewTopic[int](name+"-b"), wakebell.NewTopic[string](name+"-done")
	work := func(_ context.Context, timer wakebell.Timer[int]) (int, error) {
		switch timer.Body % 4 {
		case 0:
			return 0, wakebell.Reject(errors.New("no multiple of four"))
		case 1:
			if timer.Attempt == 1 {
				return 0, wakebell.RetryIn(10 * time.Millisecond)
			}
		}
		return timer.Body * timer.Body, nil
	}
	ended := make(chan string, joins)
	var node *wakebell.System
	report := wakebell.Handle(done, func(ctx context.Context, timer wakebell.Timer[string]) error {
		n, squares := 0, 0
		for part, err := range timer.Parts(ctx) {
			if err != nil {
				return err
			}
			var i int
			if _, err := fmt.Sscanf(part.ID, timer.ID+"-%d", &i); err != nil || i != n {
				return wakebell.Reject(fmt.Errorf("%q is not part %d", part.ID, n))
			}
			switch n++; {
			case i%4 == 0 && (part.End != wakebelltype.EndDead || part.Reason == ""), i%4 != 0 && (part.End != wakebelltype.EndDone || part.Result == nil):
				return wakebell.Reject(fmt.Errorf("part %q: %q %q", part.ID, part.End, part.Reason))
			case i%4 != 0:
				square, err := wakebell.ReadResult[int](ctx, node.Client(), part.Topic, part.ID, part.Result)
				if err != nil || square != i*i {
					return wakebell.Reject(fmt.Errorf("part %q: %d, %w", part.ID, square, err))
				}
				squares++
			}
		}
		ended <- fmt.Sprint(timer.ID, " ", n, " ", squares)
		return nil
	})
	node = stacktest.BuildOn(t, conntest.New(t, rdb, connection.Config{Logger: stacktest.Quiet}), wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.HandleResult(first, work), wakebell.HandleResult(second, work), report,
	}})
	c := stacktest.Launch(t, node).Client()
	for k := range joins {
		id := fmt.Sprint("r", k)
		drafts := make([]wakebell.Draft, parts)
		for i := range drafts {
			topic := first
			if i%3 == 0 {
				topic = second
			}
			drafts[i] = topic.Draft(i, wakebell.ID(fmt.Sprint(id, "-", i)), wakebell.In(time.Duration(i)*10*time.Millisecond))
		}
		_, err := c.Schedule(t.Context(), wakebell.Batch(drafts...).Then(done.Draft("", wakebell.ID(id), wakebell.In(time.Hour)))...)
		require.NoError(t, err)
	}
	for topic, n := range map[string]int{first.Name(): 4, done.Name(): 3} {
		for _, err := range c.Reshard(t.Context(), topic, n) {
			require.NoError(t, err)
		}
	}
	seen := map[string]bool{}
	for range joins {
		select {
		case got := <-ended:
			require.False(t, seen[got], got)
			seen[got] = true
		case <-time.After(stacktest.Patience):
			require.FailNow(t, "joins are missing", "%d have ended", len(seen))
		}
	}
	for k := range joins {
		require.True(t, seen[fmt.Sprint("r", k, " ", parts, " ", parts*3/4)], k)
	}
}

// unsettled is a source that settles nothing, as if the node had died before.
type unsettled struct {
	poller.Source
	reached chan struct{}
}

func (u unsettled) Exchange(ctx context.Context, r *exchange.Request) (*exchange.Reply, error) {
	if len(r.Settle) == 0 {
		return u.Source.Exchange(ctx, r)
	}
	select {
	case u.reached <- struct{}{}:
	default:
	}
	<-ctx.Done()
	return nil, exchange.ErrUnavailable
}

// TestPartRunsAgainAfterItsEndWasNoted kills the node of a part after it has noted the end and
// before it has settled the part: the join has the first end, and the part runs once more.
func TestPartRunsAgainAfterItsEndWasNoted(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	name := redistest.Name(t)
	tasks, done := wakebell.NewTopic[string](name+"-tasks"), wakebell.NewTopic[string](name+"-done")
	dies := stacktest.BuildOn(t, conntest.New(t, rdb, connection.Config{Logger: stacktest.Quiet}), wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(tasks, func(context.Context, wakebell.Timer[string]) error { return nil }, wakebell.LeaseTTL(time.Second)),
	}})
	reached := make(chan struct{}, 1)
	testhook.Hook(dies, testhook.Hooks{Source: func(s poller.Source) poller.Source { return unsettled{s, reached} }})
	c := stacktest.Launch(t, dies).Client()
	_, err := c.Schedule(t.Context(), wakebell.Batch(tasks.Draft("", wakebell.ID("a"))).Then(done.Draft("", wakebell.ID("r"), wakebell.In(time.Hour)))...)
	require.NoError(t, err)
	<-reached
	require.NoError(t, testhook.Kill(dies))

	ends := make(chan wakebell.PartEnd, 1)
	again := stacktest.Serve(t, rdb,
		wakebell.Handle(tasks, func(context.Context, wakebell.Timer[string]) error { return wakebell.Reject(errors.New("again")) }),
		wakebell.Handle(done, func(ctx context.Context, timer wakebell.Timer[string]) error {
			for part, err := range timer.Parts(ctx) {
				if err != nil {
					return err
				}
				ends <- part
			}
			return nil
		}))
	require.Equal(t, wakebelltype.EndDone, (<-ends).End)
	stacktest.Eventually(t, func() bool {
		letters, err := again.Client().LastDead(t.Context(), tasks.Name(), 1)
		return err == nil && len(letters) == 1
	}, "the part runs again")
	join, err := again.Client().Join(t.Context(), done.Name(), "r")
	require.NoError(t, err)
	require.Equal(t, wakebelltype.Join{Parts: 1, Done: 1}, join)
}

// TestHandlersOfJoinsAreMeasured has one join whose parts end, and one whose instant comes
// first, each with a handler that fails once: only the first attempt counts.
func TestHandlersOfJoinsAreMeasured(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		work, done := wakebell.NewTopic[string]("work"), wakebell.NewTopic[string]("done")
		reader := sdk.NewManualReader()
		on := conntest.New(t, rdb, connection.Config{MeterProvider: sdk.NewMeterProvider(sdk.WithReader(reader))})
		once := func(_ context.Context, timer wakebell.Timer[string]) error {
			if timer.Attempt == 1 {
				return errors.New("once more")
			}
			return nil
		}
		sys := stacktest.Launch(t, stacktest.BuildOn(t, on, wakebell.Config{Handlers: []wakebell.Handler{
			wakebell.Handle(work, func(context.Context, wakebell.Timer[string]) error { return nil }), wakebell.Handle(done, once),
		}}))
		for id, in := range map[string]time.Duration{"soon": time.Second, "late": 24 * time.Hour} {
			_, err := sys.Client().Schedule(t.Context(), wakebell.Batch(work.Draft("", wakebell.ID(id), wakebell.In(in))).
				Then(done.Draft("", wakebell.ID(id), wakebell.In(time.Hour)))...)
			require.NoError(t, err)
		}
		<-time.After(2 * time.Hour)

		var collected metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(t.Context(), &collected))
		counted := map[string]int64{}
		for _, m := range collected.ScopeMetrics[0].Metrics {
			if m.Name != "wakebell.joins" {
				continue
			}
			for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
				how, _ := p.Attributes.Value("wakebell.outcome")
				counted[how.AsString()] = p.Value
			}
		}
		require.Equal(t, map[string]int64{"made": 2, "complete": 1, "timed_out": 1}, counted)
	})
}

// TestPartIsNotedWhileHeartbeatsExtendItsLease extends the lease of a part whenever its node has
// asked for its token, and before it looks whether Redis still has that.
func TestPartIsNotedWhileHeartbeatsExtendItsLease(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		work, done := wakebell.NewTopic[int]("work"), wakebell.NewTopic[int]("done")
		var part atomic.Pointer[wakebell.Meta]
		var extended atomic.Int64
		ends := make(chan wakebelltype.End, 1)
		sys := stacktest.Launch(t, stacktest.BuildOn(t, conntest.New(t, rdb, connection.Config{}), wakebell.Config{Handlers: []wakebell.Handler{
			wakebell.Handle(work, func(_ context.Context, timer wakebell.Timer[int]) error { part.Store(&timer.Meta); return nil }),
			wakebell.Handle(done, func(ctx context.Context, timer wakebell.Timer[int]) error {
				for end, err := range timer.Parts(ctx) {
					if err != nil {
						return err
					}
					ends <- end.End
				}
				return nil
			}),
		}}))
		rdb.AddHook(before(func(cmd redis.Cmder) {
			if cmd.Name() != looks {
				return
			}
			<-time.After(time.Millisecond) // otherwise the lease ends as before
			if m := part.Load(); m != nil && m.Extend(t.Context()) == nil {
				extended.Add(1)
			}
		}))
		_, err := sys.Client().Schedule(t.Context(), wakebell.Batch(work.Draft(1, wakebell.ID("a"))).Then(done.Draft(2, wakebell.ID("b"), wakebell.In(time.Hour)))...)
		require.NoError(t, err)
		require.Equal(t, wakebelltype.EndDone, <-ends)
		require.Positive(t, extended.Load())
	})
}

// TestPartsThatEndTogetherShareCalls counts the looks and notes of parts whose handlers end at
// the same time.
func TestPartsThatEndTogetherShareCalls(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		const n = 50
		rdb, _ := redistest.Embedded(t)
		work, done := wakebell.NewTopic[int]("work"), wakebell.NewTopic[int]("done")
		ends := make(chan int, 1)
		sys := stacktest.Launch(t, stacktest.BuildOn(t, conntest.New(t, rdb, connection.Config{}), wakebell.Config{Handlers: []wakebell.Handler{
			wakebell.Handle(work, func(context.Context, wakebell.Timer[int]) error {
				<-time.After(time.Second) // until all run
				return nil
			}, wakebell.MaxConcurrent(n)),
			wakebell.Handle(done, func(ctx context.Context, timer wakebell.Timer[int]) error {
				all := 0
				for end, err := range timer.Parts(ctx) {
					if err != nil || end.End != wakebelltype.EndDone {
						return errors.Join(err, errors.New(string(end.End)))
					}
					all++
				}
				ends <- all
				return nil
			}),
		}}))
		var looked, noted atomic.Int64
		rdb.AddHook(before(func(cmd redis.Cmder) {
			switch {
			case cmd.Name() == looks:
				looked.Add(1)
			case cmd.Name() == "evalsha" && strings.HasPrefix(fmt.Sprint(cmd.Args()[3]), "timers_join:"):
				noted.Add(1)
			default:
				return
			}
			<-time.After(100 * time.Millisecond) // others come meanwhile
		}))
		parts := make([]wakebell.Draft, n)
		for i := range parts {
			parts[i] = work.Draft(i, wakebell.In(time.Minute))
		}
		_, err := sys.Client().Schedule(t.Context(), wakebell.Batch(parts...).Then(done.Draft(n, wakebell.In(time.Hour)))...)
		require.NoError(t, err)
		require.Equal(t, n, <-ends)
		for _, calls := range []int64{looked.Load(), noted.Load()} {
			require.Positive(t, calls)
			require.Less(t, calls, int64(n/4))
		}
	})
}

// looks is the command with which nodes look whether they still hold parts.
const looks = "zmscore"

// before is called before each command, beside pipelines.
type before func(redis.Cmder)

func (b before) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b before) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		b(cmd)
		return next(ctx, cmd)
	}
}

func (b before) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestPartEndsWhileRedisIsFull has a part whose handler succeeds on a Redis without memory: it is
// settled, and the join has its end.
func TestPartEndsWhileRedisIsFull(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t, "--maxmemory-policy", "noeviction").Client(t)
	work, done := wakebell.NewTopic[int]("work"), wakebell.NewTopic[int]("done")
	scheduled, ends := make(chan struct{}), make(chan wakebell.PartEnd, 1)
	sys := stacktest.Serve(t, rdb,
		wakebell.HandleResult(work, func(ctx context.Context, timer wakebell.Timer[int]) (int, error) {
			if timer.Attempt > 1 {
				return 0, wakebell.Reject(errors.New("the first attempt was settled"))
			}
			<-scheduled
			return 7, rdb.ConfigSet(ctx, "maxmemory", "1").Err()
		}),
		wakebell.Handle(done, func(ctx context.Context, timer wakebell.Timer[int]) error {
			for end, err := range timer.Parts(ctx) {
				if err != nil {
					return err
				}
				ends <- end
			}
			return nil
		}))
	_, err := sys.Client().Schedule(t.Context(), wakebell.Batch(work.Draft(1, wakebell.ID("a"))).Then(done.Draft(2, wakebell.ID("b"), wakebell.In(time.Hour)))...)
	require.NoError(t, err)
	close(scheduled)
	end := stacktest.Receive(t, ends)
	require.Equal(t, wakebelltype.EndDone, end.End)
	require.NotNil(t, end.Result)
}
