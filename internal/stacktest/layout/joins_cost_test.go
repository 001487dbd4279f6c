package layout_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
)

// joinCommands counts the commands of a client, and those with keys of joins.
type joinCommands struct{ all, joins atomic.Int64 }

func (c *joinCommands) note(cmds ...redis.Cmder) {
	c.all.Add(int64(len(cmds)))
	for _, cmd := range cmds {
		if strings.Contains(fmt.Sprint(cmd.Args()...), "timers_join") {
			c.joins.Add(1)
		}
	}
}

func (c *joinCommands) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *joinCommands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { c.note(cmd); return next(ctx, cmd) }
}

func (c *joinCommands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { c.note(cmds...); return next(ctx, cmds) }
}

// TestTopicsWithoutJoinsSendNothingForThem schedules and handles 200 timers, with headers of
// their own, while another topic has a join. The only commands about joins are the look for
// those to audit and the audits, at most one of each in 5 s.
func TestTopicsWithoutJoinsSendNothingForThem(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]bool{"no joins": false, "a join of others": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stacktest.Virtually(t, func(t *testing.T) {
				const n = 200
				rdb, _ := redistest.Embedded(t)
				plain, waits := wakebell.NewTopic[int]("plain"), wakebell.NewTopic[int]("waits")
				var handled atomic.Int64
				sys := stacktest.Launch(t, stacktest.BuildOn(t, conntest.New(t, rdb, connection.Config{}), wakebell.Config{Handlers: []wakebell.Handler{
					wakebell.Handle(plain, func(context.Context, wakebell.Timer[int]) error { handled.Add(1); return nil }),
				}}))
				c := sys.Client()
				if others {
					_, err := c.Schedule(t.Context(), waits.Draft(0, wakebell.ID("r"), wakebell.In(time.Hour), wakebell.AfterOpen()))
					require.NoError(t, err)
				}
				sent := &joinCommands{}
				rdb.AddHook(sent)
				for i := range n {
					before := sent.joins.Load()
					_, err := plain.Schedule(t.Context(), c, i, wakebell.Header("tenant", "a"))
					require.NoError(t, err)
					require.Equal(t, before, sent.joins.Load(), "no time has passed for an audit")
				}
				<-time.After(time.Second)
				require.EqualValues(t, n, handled.Load())
				require.GreaterOrEqual(t, sent.all.Load(), int64(n), "commands are seen")
				require.LessOrEqual(t, sent.joins.Load(), int64(5), "of %d commands", sent.all.Load())
			})
		})
	}
}

// BenchmarkParts handles timers alone and as parts of a join in turn, on one Redis, and reports
// the medians of both as timers/s. The join is measured until its handler begins.
func BenchmarkParts(b *testing.B) {
	const n = 2000
	rdb, name := redistest.Shared(b), redistest.Name(b)
	work, done := wakebell.NewTopic[int](name+"-work"), wakebell.NewTopic[int](name+"-done")
	handled, joined := make(chan struct{}, n), make(chan struct{}, 1)
	sys := stacktest.Launch(b, stacktest.BuildOn(b, conntest.New(b, rdb, connection.Config{Logger: stacktest.Quiet}), wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(work, func(context.Context, wakebell.Timer[int]) error { handled <- struct{}{}; return nil }),
		wakebell.Handle(done, func(context.Context, wakebell.Timer[int]) error { joined <- struct{}{}; return nil }),
	}}))
	round := func(join bool, i int) (perSecond float64) {
		_, err := sys.Client().Pause(b.Context(), work.Name(), "bench", "schedule all")
		require.NoError(b, err)
		drafts := make([]wakebell.Draft, n)
		for k := range drafts {
			drafts[k] = work.Draft(k, wakebell.ID(fmt.Sprint(join, i, "-", k)))
		}
		if join {
			drafts = wakebell.Batch(drafts...).Then(done.Draft(0, wakebell.ID(fmt.Sprint(i)), wakebell.In(time.Hour)))
		}
		_, err = sys.Client().Schedule(b.Context(), drafts...)
		require.NoError(b, err)
		_, err = sys.Client().Resume(b.Context(), work.Name())
		require.NoError(b, err)
		<-handled // the pause has ended
		began := time.Now()
		for range n - 1 {
			<-handled
		}
		if join {
			<-joined
		}
		return (n - 1) / time.Since(began).Seconds()
	}
	var rates [2][]float64
	round(false, -1)
	round(true, -1)
	for i := range b.N {
		rates[0] = append(rates[0], round(false, i))
		rates[1] = append(rates[1], round(true, i))
	}
	for i, unit := range []string{"alone/s", "parts/s"} {
		slices.Sort(rates[i])
		b.ReportMetric(rates[i][len(rates[i])/2], unit)
	}
}
