package wakebell

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wakebell/wakebell/actors/scheduler"
	"github.com/wakebell/wakebell/internal/firing"
	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/redisops/recurring"
)

// Beat has a System fire recurring schedules. Any number of nodes may: each run
// is fired once, by one of them. The zero value works.
type Beat struct {
	// Schedules are put at Start. Those that an earlier Start of the same Owner
	// and Config.Prefix has put and that are not among them any more are deleted,
	// each with a line in the log; nil leaves them alone.
	Schedules []Recurring

	// Owner names the service whose Schedules these are, over its restarts and on
	// all of its nodes: 1 to 128 bytes, required with Schedules. Services with
	// different ones leave each other's alone.
	Owner string

	// Celery makes Celery messages of the runs of entries that Python processes
	// have saved, on this Redis; default: timers on the topic that is named as
	// the task, with the body {"args": …, "kwargs": …}.
	Celery bool

	// Zone is that of crontabs and relative intervals without one of their own:
	// the time zone of the Celery app. Default UTC.
	Zone *time.Location

	// TakeLock takes RedBeat's lock for all nodes of ours together, so that a
	// Python beat waits. Without it, and always while a Python beat holds the
	// lock, the beat whose lock it is fires.
	TakeLock bool

	// MaxInterval is the beat_max_loop_interval of the Python beats, default
	// 300 s, at most a day. One that has not renewed its lock for 30 s more while
	// schedules are overdue counts as dead.
	MaxInterval time.Duration

	// OnFire is called for each run that this node has fired. It must not block:
	// nothing is fired meanwhile. A panic is logged.
	OnFire func(ScheduleRun)
}

func (b *Beat) validate() error {
	if b == nil {
		return nil
	}
	errs := []error{within("Beat.MaxInterval", b.MaxInterval, 0, 24*time.Hour)}
	if b.Schedules != nil && (b.Owner == "" || len(b.Owner) > maxNodeName) {
		errs = append(errs, invalid("Beat.Owner", "%d bytes, want 1 to %d that name the service whose Schedules these are", len(b.Owner), maxNodeName))
	}
	seen := map[string]bool{}
	for i, r := range b.Schedules {
		err := r.validate()
		if seen[r.name] {
			err = errors.Join(err, invalid("name", "%s is given twice", quoted(r.name)))
		}
		if seen[r.name] = true; err != nil {
			errs = append(errs, fmt.Errorf("Beat.Schedules[%d] (%s): %w", i, quoted(r.name), err))
		}
	}
	return errors.Join(errs...)
}

// defaultMaxInterval is RedBeat's.
const defaultMaxInterval = 300 * time.Second

// fleetToken is the same on all nodes with the same keys, and looks as RedBeat's.
func fleetToken(k Keys) string {
	sum := sha256.Sum256([]byte("wakebell " + k.WithDefaults().Beat))
	return hex.EncodeToString(sum[:16])
}

// actorBeat is what the actor of the beat works with; nil without one.
func (s *System) actorBeat() *scheduler.Config {
	b := s.cfg.Beat
	if b == nil {
		return nil
	}
	store := recurring.New(s.store) // whose calls the actor makes again itself
	cfg := firing.Config{
		Store: store, Maker: s.client.schedules.hand.Maker, Log: s.cfg.Logger, Zone: b.Zone,
		MaxInterval: b.MaxInterval, LookEvery: s.hooks.Idle,
	}
	if cfg.MaxInterval == 0 {
		cfg.MaxInterval = defaultMaxInterval
	}
	if b.TakeLock {
		cfg.Token = fleetToken(s.cfg.Keys)
	}
	if b.OnFire != nil {
		cfg.OnFire = s.onFire
	}
	return &scheduler.Config{
		Schedule: func() scheduler.Schedule { return firing.New(cfg) },
		Listen:   store.Listen,
	}
}

// onFire keeps a panic of user code from the beat.
func (s *System) onFire(run ScheduleRun) {
	defer func() {
		if r := recover(); r != nil {
			s.cfg.Logger.Error("OnFire panicked", "schedule", run.Name, "panic", fmt.Sprint(r))
		}
	}()
	s.cfg.Beat.OnFire(run)
}

// reconcile puts the schedules of the configuration, and deletes those that were
// in an earlier one.
func (s *System) reconcile(ctx context.Context) error {
	b := s.cfg.Beat
	if b == nil {
		return nil
	}
	store := s.client.schedules.store
	if err := store.Check(ctx); err != nil {
		return err
	}
	if b.Schedules == nil {
		return nil
	}
	prefix := s.cfg.Prefix
	var names []string
	static := slices.Clone(b.Schedules)
	for i, r := range static {
		static[i].owner = b.Owner
		names = append(names, r.name)
	}
	before, err := store.Statics(ctx, prefix, b.Owner)
	if err != nil {
		return err
	}
	if err := store.AddStatics(ctx, prefix, b.Owner, names...); err != nil {
		return err
	}
	if err := s.client.schedules.Put(ctx, static...); err != nil {
		return err
	}
	gone := slices.DeleteFunc(before, func(name string) bool { return slices.Contains(names, name) })
	for _, name := range gone {
		// One that was put by others since is theirs.
		ours := func(o recur.Ours) bool { return o.Owner == b.Owner }
		found, err := s.client.schedules.remove(ctx, name, ours)
		if err != nil {
			return err
		}
		if found {
			s.cfg.Logger.InfoContext(ctx, "recurring schedule deleted: it is not configured any more", "schedule", name, "owner", b.Owner)
		}
	}
	return store.DropStatics(ctx, prefix, b.Owner, gone...)
}
