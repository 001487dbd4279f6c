package wakebell

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/wakebell/wakebell/actors/scheduler"
	"github.com/wakebell/wakebell/internal/beat"
	"github.com/wakebell/wakebell/recurring"
)

// defaultMaxInterval is RedBeat's.
const defaultMaxInterval = 300 * time.Second

// fleetToken is the same on all nodes with the same keys, and looks as RedBeat's.
func fleetToken(k Keys) string {
	sum := sha256.Sum256([]byte("wakebell " + k.WithDefaults().Beat))
	return hex.EncodeToString(sum[:16])
}

// actorBeat is what the actor of the beat works with; nil without one.
func (s *System) actorBeat() *scheduler.Config {
	b := s.cfg.Scheduler
	if b == nil {
		return nil
	}
	store := s.store.Beat() // whose calls the actor makes again itself
	cfg := beat.Config{
		Store: store, Maker: s.client.hand().Maker, Log: s.cfg.Logger, Zone: b.Zone,
		MaxInterval: b.MaxInterval, LookEvery: s.hooks.Idle,
	}
	if cfg.MaxInterval == 0 {
		cfg.MaxInterval = defaultMaxInterval
	}
	if b.TakeLock {
		cfg.Token = fleetToken(s.cfg.Keys)
	}
	if b.OnFire != nil {
		cfg.OnFire = func(f beat.Fire) { s.onFire(recurring.Run{Name: f.Name, Due: f.Due, Fired: f.Fired, Number: f.Run}) }
	}
	return &scheduler.Config{
		Schedule: func() scheduler.Schedule { return beat.New(cfg) },
		Listen:   store.Listen,
	}
}

// onFire keeps a panic of user code from the beat.
func (s *System) onFire(run recurring.Run) {
	defer func() {
		if r := recover(); r != nil {
			s.cfg.Logger.Error("OnFire panicked", "schedule", run.Name, "panic", fmt.Sprint(r))
		}
	}()
	s.cfg.Scheduler.OnFire(run)
}

// reconcile puts the schedules of the configuration, and deletes those that were
// in an earlier one.
func (s *System) reconcile(ctx context.Context) error {
	b := s.cfg.Scheduler
	if b == nil {
		return nil
	}
	if err := s.client.store.Beat().Check(ctx); err != nil {
		return err
	}
	if b.Schedules == nil {
		return nil
	}
	deleted, err := s.client.schedules.Reconcile(ctx, b.Owner, b.Schedules...)
	for _, name := range deleted {
		s.cfg.Logger.InfoContext(ctx, "recurring schedule deleted: it is no longer configured", "schedule", name, "owner", b.Owner)
	}
	return err
}

// hand reads and fires the entries of this prefix.
func (c *Client) hand() beat.Hand {
	store := c.store.Beat()
	return beat.Hand{Store: store, Zone: c.zone, Maker: beat.Maker{
		Prefix: c.prefix, Limit: c.limit, Celery: c.celery, Shares: store.Shares,
	}}
}
