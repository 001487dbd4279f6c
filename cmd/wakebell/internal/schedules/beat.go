package schedules

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/process"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/telemetry"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/recurring"
)

type beatFlags struct {
	celery, takeLock bool
	zone             string
	maxInterval      time.Duration
	wait             time.Duration
	health           string
	metrics          telemetry.Flags

	log cli.LogFlags
}

// BeatCommand returns the command beat.
func BeatCommand(a *cli.App) *cobra.Command {
	f := &beatFlags{}
	cmd := &cobra.Command{
		Use:   "beat",
		Short: "Fire recurring schedules",
		Long: `Fires recurring schedules until SIGTERM or SIGINT: those stored with wakebell
schedules, and those that Python processes saved with RedBeat. Any number of
beats may run, on any number of machines: each run is fired once. While a Python
beat holds RedBeat's lock, this beat waits.

A run becomes a timer on the schedule's topic. For a Python schedule the topic is
the task's name; with --celery its runs become Celery messages on this Redis.

With --prefix it fires the schedules stored with this prefix, and Python's;
without, those stored without a prefix. All beats on one Redis need the same
--celery.

Each run that this process fires is one JSON line on stdout: name, due, fired_at
and run (its number). The exit code is 1 when stdout cannot be written.

` + telemetry.Environment,
		Example: `  wakebell beat
  wakebell beat --celery --zone Europe/Berlin
  wakebell beat --key-prefix '{redbeat}:' --redis redis+cluster://a:6379`,
		Args: cli.NoArgs,
	}
	keyPrefixFlag(a, cmd)
	flags := cmd.Flags()
	flags.BoolVar(&f.celery, "celery", false, "send runs of Python schedules as Celery messages")
	flags.BoolVar(&f.takeLock, "take-lock", false, "hold RedBeat's lock, so that Python beats wait")
	flags.StringVar(&f.zone, "zone", "UTC", "time `zone` of crontabs without one; use the Celery app's")
	cli.DurationVar(flags, &f.maxInterval, "max-interval", 5*time.Minute, "beat_max_loop_interval of the Python beats")
	cli.DurationVar(flags, &f.wait, "wait-for-redis", time.Hour, "how long to wait for Redis at startup")
	telemetry.HealthFlag(flags, &f.health)
	f.metrics.Register(cmd)
	f.log.Register(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, _ []string) error { return runBeat(ctx, a, f) })
	return cmd
}

// keyPrefixFlag adds --key-prefix, the prefix of the keys of recurring schedules.
func keyPrefixFlag(a *cli.App, cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.Keys.Beat, "key-prefix", "redbeat:", "prefix of the `keys` of recurring schedules")
}

// fireLine is the JSON line of a run that was fired.
type fireLine struct {
	Name    string `json:"name"`
	Due     string `json:"due"`
	FiredAt string `json:"fired_at"`
	Run     int64  `json:"run"`
}

func newFireLine(r recurring.Run) fireLine {
	return fireLine{r.Name, output.Stamp(r.Due), output.Stamp(r.Fired), r.Number}
}

func runBeat(ctx context.Context, a *cli.App, f *beatFlags) (err error) {
	zone, err := zoneNamed(f.zone)
	if err != nil {
		return err
	}
	log := f.log.Logger(a.Stderr)
	exported, err := telemetry.Start(ctx, f.metrics, log)
	if err != nil {
		return err
	}
	defer exported.Stop()
	conn, err := a.Connect()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()

	defer process.KeepBrokenPipes()()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	out := output.NewLockedWriter(a.Stdout)
	cfg := conn.Config(log)
	cfg.Celery, cfg.Zone = f.celery, zone
	cfg.TracerProvider, cfg.MeterProvider, cfg.MetricTopics = exported.TracerProvider, exported.MeterProvider, f.metrics.Topics
	settings, err := connection.Switched(conn.Redis, cfg, opened.Switches{MetricShards: f.metrics.Shards})
	if err != nil {
		return err
	}
	sys, err := wakebell.New(nil, settings, wakebell.Config{
		WaitForRedis: f.wait,
		DrainTimeout: -1,
		Scheduler: &recurring.SchedulerConfig{
			TakeLock: f.takeLock, MaxInterval: f.maxInterval,
			OnFire: func(r recurring.Run) {
				line, err := output.JSONLine(newFireLine(r))
				if err == nil {
					_, err = out.Write(line)
				}
				if err != nil {
					fail(fmt.Errorf("%w: %w", output.ErrStdout, err))
				}
			},
		},
	})
	if err != nil {
		return err
	}
	stopHealth, err := telemetry.ServeHealth(f.health, sys.HealthHandler(), log)
	if err != nil {
		return err
	}
	defer stopHealth()
	return cli.RunSystem(ctx, sys, log)
}
