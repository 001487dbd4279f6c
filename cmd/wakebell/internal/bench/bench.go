// Package bench has the command that measures how fast timers are delivered.
package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/wakebelltype"
)

type benchFlags struct {
	n             int
	payload       int
	maxConcurrent int
	topic         string
	spread        time.Duration
	leaseTTL      time.Duration
	window        time.Duration
	history       wakebelltype.HistoryPolicy
	noCounts      bool
}

const (
	maxTimers = 50_000_000
	batch     = 1000 // timers per call
	// lead is the time between loading the last timer and the first due
	// time of a spread; loadTime is the time allowed for loading one timer.
	lead     = 500 * time.Millisecond
	loadTime = 20 * time.Microsecond
	// idleLimit is the longest time without progress before a run is given up.
	idleLimit = 30 * time.Second
	// benchLook is how often progress is checked until all timers are handled.
	benchLook = 50 * time.Millisecond
	// benchAutomatic is the default of --window.
	benchAutomatic = -time.Nanosecond
)

// Command returns the command bench.
func Command(a *cli.App) *cobra.Command {
	f := &benchFlags{}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure how fast timers are delivered",
		Long: `Loads N timers into a topic of its own, handles them with a no-op handler,
removes the topic and prints one line of JSON:
  n, payload_bytes, max_concurrent
  seconds                   from the start of the node to the last settlement
  timers_per_s
  client_cpu_us_per_timer   of this process
  redis_cpu_us_per_timer    of the main thread of Redis
  redis_commands_per_timer  as Redis counts them, those of scripts included
  redis_calls_per_timer     commands sent by this process
  allocs_per_timer          of this process
  lateness_ms_p50, _p99     time of the claim minus due time
  handled, duplicates       distinct timers, and deliveries beyond the first
Loading is not measured. The figures of Redis include the load of other clients;
they are null with --redis embedded and on a Cluster.

By default all timers are due when they are loaded, so their lateness includes
the wait for the run. With --spread their due times are spread evenly over that
time, starting after the load: lateness is then that of a node that keeps up.`,
		Example: `  wakebell bench --n 100000 --payload 100 --max-concurrent 200
  wakebell bench --n 20000 --spread 10s`,
		Args: cli.NoArgs,
	}
	flags := cmd.Flags()
	flags.IntVarP(&f.n, "n", "n", 100_000, "number of timers")
	flags.IntVar(&f.payload, "payload", 100, "`bytes` of a body")
	flags.IntVar(&f.maxConcurrent, "max-concurrent", 200, "timers handled at once")
	flags.StringVarP(&f.topic, "topic", "t", "wakebell-bench", "`topic` name, to which a unique suffix is appended")
	cli.DurationVar(flags, &f.spread, "spread", 0, "time over which the timers become due")
	cli.DurationVar(flags, &f.leaseTTL, "lease-ttl", 30*time.Second, "duration of a lease")
	cli.DurationVar(flags, &f.window, "window", benchAutomatic, "delivery window of the handler; negative: it follows the load")
	flags.TextVar(&f.history, "history", wakebelltype.HistoryFailures, "attempts that the node records: `policy` off, failures or all")
	flags.BoolVar(&f.noCounts, "no-counts", false, "count nothing in Redis")
	cmd.RunE = a.Does(func(ctx context.Context, _ []string) error { return measure(ctx, a, f) })
	return cmd
}

// resultLine is the JSON line that bench prints.
type resultLine struct {
	N                     int      `json:"n"`
	PayloadBytes          int      `json:"payload_bytes"`
	MaxConcurrent         int      `json:"max_concurrent"`
	Seconds               float64  `json:"seconds"`
	TimersPerS            float64  `json:"timers_per_s"`
	ClientCPUUsPerTimer   *float64 `json:"client_cpu_us_per_timer"`
	RedisCPUUsPerTimer    *float64 `json:"redis_cpu_us_per_timer"`
	RedisCommandsPerTimer *float64 `json:"redis_commands_per_timer"`
	RedisCallsPerTimer    float64  `json:"redis_calls_per_timer"`
	AllocsPerTimer        float64  `json:"allocs_per_timer"`
	LatenessMSP50         float64  `json:"lateness_ms_p50"`
	LatenessMSP99         float64  `json:"lateness_ms_p99"`
	Handled               int      `json:"handled"`
	Duplicates            int      `json:"duplicates"`
}

func measure(ctx context.Context, a *cli.App, f *benchFlags) (err error) {
	switch {
	case f.n < 1 || f.n > maxTimers:
		return cli.Usagef("--n: %d is not within 1 and %d", f.n, maxTimers)
	case f.payload < 0:
		return cli.Usagef("--payload: %d is negative", f.payload)
	case f.spread < 0:
		return cli.Usagef("--spread: %v is negative", f.spread)
	}
	conn, err := a.Connect()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	cfg := conn.Config(slog.New(slog.DiscardHandler))
	cfg.NoCounts = f.noCounts
	client, err := conn.ClientWith(cfg)
	if err != nil {
		return err
	}
	conn.CountCalls()
	b := &benchRun{benchFlags: *f, conn: conn, client: client, counts: newDeliveryCounts(f.n)}
	b.topic = f.topic + "-" + uuid.NewString()
	defer func() {
		err = errors.Join(err, client.Forget(context.WithoutCancel(ctx), b.topic))
	}()
	if err := b.load(ctx); err != nil {
		return err
	}
	result, err := b.run(ctx)
	if err != nil {
		return err
	}
	return a.PrintJSON(result)
}

// benchRun is one run of the benchmark.
type benchRun struct {
	benchFlags
	conn   *cli.Connection
	client *wakebell.Client
	counts *deliveryCounts
}

// load schedules the timers. Their ids are their numbers, by which the handler
// counts them.
func (b *benchRun) load(ctx context.Context) error {
	topic := wakebell.NewTopic[[]byte](b.topic)
	body := make([]byte, b.payload)
	var start time.Time
	if b.spread > 0 {
		now, err := b.conn.Redis.Time(ctx).Result()
		if err != nil {
			return fmt.Errorf("load: %w", err)
		}
		start = now.Add(lead + time.Duration(b.n)*loadTime)
	}
	drafts := make([]wakebell.Draft, 0, batch)
	for first := 0; first < b.n; first += batch {
		drafts = drafts[:0]
		for i := first; i < min(first+batch, b.n); i++ {
			when := wakebell.In(0)
			if b.spread > 0 {
				when = wakebell.At(start.Add(time.Duration(float64(b.spread) * float64(i) / float64(b.n))))
			}
			drafts = append(drafts, topic.Draft(body, wakebell.ID(strconv.Itoa(i)), when))
		}
		if _, err := b.client.Schedule(ctx, drafts...); err != nil {
			return fmt.Errorf("load: %w", err)
		}
	}
	return nil
}

// run handles the timers and measures.
func (b *benchRun) run(ctx context.Context) (resultLine, error) {
	sys, err := wakebell.New(nil, b.client.Connection(), wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.Handle(wakebell.NewTopic[[]byte](b.topic), b.counts.handle, b.options()...)},
	})
	if err != nil {
		return resultLine{}, err
	}
	before, err := takeReading(ctx, b.conn)
	if err != nil {
		return resultLine{}, err
	}
	if err := sys.Start(ctx); err != nil {
		return resultLine{}, err
	}
	err = b.settle(ctx, sys)
	after, readErr := takeReading(ctx, b.conn)
	if err := errors.Join(err, readErr, sys.Stop()); err != nil {
		return resultLine{}, err
	}
	return b.result(before, after), nil
}

func (b *benchRun) options() []wakebell.HandlerOption {
	options := []wakebell.HandlerOption{wakebell.MaxConcurrent(b.maxConcurrent), wakebell.LeaseTTL(b.leaseTTL)}
	options = append(options, wakebell.History(b.history))
	if b.window >= 0 {
		options = append(options, wakebell.DeliveryWindow(b.window))
	}
	return options
}

// settle waits until all timers are handled and settled.
func (b *benchRun) settle(ctx context.Context, sys *wakebell.System) error {
	name := b.conn.Prefix + b.topic
	look := time.NewTicker(benchLook) // rarely, because looking costs CPU time too
	defer look.Stop()
	handled := b.counts.done
	var acked int64
	moved := time.Now()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("bench: %w", ctx.Err())
		case <-handled:
			handled = nil
			look.Reset(time.Millisecond)
		case <-look.C:
		}
		counters := sys.Counters()[name]
		if handled == nil && counters.Acked >= int64(b.n) {
			return nil
		}
		if counters.Acked != acked {
			acked, moved = counters.Acked, time.Now()
		}
		if limit := idleLimit + b.spread; time.Since(moved) > limit {
			return fmt.Errorf("bench: %d of %d timers were settled, then none within %v", acked, b.n, limit)
		}
	}
}
