package observe_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestOperationsAreAudited makes each operation of the table once.
func TestOperationsAreAudited(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	name, ctx := redistest.Name(t), t.Context()
	cfg := wakebelltype.AuditConfig{Key: "audit:" + name, Caller: "billing"}
	c, err := wakebell.NewClient(conntest.New(t, rdb, connection.Config{Prefix: "p:", Audit: cfg}))
	require.NoError(t, err)
	gates, err := gate.New(conntest.New(t, rdb, connection.Config{Audit: cfg}), gate.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, gates.Close()) }()

	type step struct {
		operation wakebelltype.AuditOperation
		name      string
		count     int64
		detail    string
		do        func() error
	}
	keys := wakebelltype.QueueKeys{Name: name}
	rule := recurring.Schedule{Name: name, Topic: name, Rule: recurring.Rule{Every: time.Hour}}
	fence := uint64(0)
	for _, s := range []step{
		{"topic.pause", "p:" + name, 1, "by: ada, reason: the bank is down", func() error {
			_, err := c.Pause(ctx, name, "ada", "the bank is down")
			return err
		}},
		{"topic.resume", "p:" + name, 1, "", func() error { _, err := c.Resume(ctx, name); return err }},
		{"topic.retune", "p:" + name, 1, "max_concurrent: 3", func() error {
			_, err := c.Retune(ctx, name, wakebelltype.Settings{MaxConcurrent: 3})
			return err
		}},
		{"topic.retune", "p:" + name, 1, "no overrides", func() error {
			_, err := c.Retune(ctx, name, wakebelltype.Settings{})
			return err
		}},
		{"topic.cancel_all", "p:" + name, 2, "", func() error {
			topic := wakebell.NewTopic[string](name)
			_, err := c.Schedule(ctx, topic.Draft("a", wakebell.In(time.Hour)), topic.Draft("b", wakebell.In(time.Hour)))
			require.NoError(t, err)
			_, err = c.CancelAll(ctx, name)
			return err
		}},
		{"topic.redrive", "p:" + name, 0, "reason contains: x", func() error {
			_, err := c.Redrive(ctx, name, wakebelltype.RedriveOptions{Filter: wakebelltype.DeadFilter{Reason: "x"}})
			return err
		}},
		{"topic.delete_dead", "p:" + name, 0, "older than: 1h0m0s", func() error {
			_, err := c.DeleteDead(ctx, name, wakebelltype.DeadFilter{OlderThan: time.Hour})
			return err
		}},
		{"topic.cancel", "p:" + name, 3, "timers whose ids begin with", func() error {
			return c.RecordChange(ctx, wakebelltype.Change{
				Operation: wakebelltype.AuditTopicCancel, Name: name, Count: 3, Detail: `timers whose ids begin with "inv-"`,
			})
		}},
		{"queue.publish", "p:" + name, 1, "ids: a", func() error {
			return c.RecordChange(ctx, wakebelltype.Change{Operation: wakebelltype.AuditQueuePublish, Name: name, Count: 1, Detail: "ids: a"})
		}},
		{"topic.remove", "p:" + name, 1, "", func() error { _, err := c.RemoveTopic(ctx, name); return err }},
		{"topic.forget", "p:" + name, 1, "", func() error { return c.Forget(ctx, name) }},
		{"queue.purge", "p:" + name, 1, "waiting", func() error {
			_, err := c.Queues().Publish(ctx, queue.New[string](name).Draft("x"))
			require.NoError(t, err)
			_, err = c.Queues().Purge(ctx, keys, false)
			return err
		}},
		{"queue.purge", "p:" + name, 0, "kept", func() error { _, err := c.Queues().PurgeKept(ctx, keys); return err }},
		{"queue.redrive", "p:" + name, 2, "", func() error {
			require.NoError(t, rdb.LPush(ctx, "p:"+name+"::dlq", "x", "y").Err())
			_, err := queue.Redrive(ctx, c.Queues(), keys, queue.RedriveOptions{})
			return err
		}},
		{"queue.delete_dead", "p:" + name, 1, "", func() error {
			require.NoError(t, rdb.LPush(ctx, "p:"+name+"::dlq", "z").Err())
			for l, err := range c.Queues().DeadLetters(ctx, keys, wakebelltype.Page{}) {
				require.NoError(t, err)
				_, err = c.Queues().DeleteDeadLetters(ctx, keys, l)
				require.NoError(t, err)
			}
			return nil
		}},
		{"schedule.put", "p:" + name, 1, "", func() error { return c.Schedules().Put(ctx, rule) }},
		{"schedule.pause", "p:" + name, 1, "", func() error { return c.Schedules().Pause(ctx, name) }},
		{"schedule.resume", "p:" + name, 1, "", func() error { return c.Schedules().Resume(ctx, name) }},
		{"schedule.run", "p:" + name, 1, "", func() error { _, err := c.Schedules().RunNow(ctx, name); return err }},
		{"schedule.backfill", "p:" + name, 2, "from: 2031-01-01T00:00:00Z, to: 2031-01-01T02:00:00Z", func() error {
			from := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
			_, err := c.Schedules().Backfill(ctx, name, from, from.Add(2*time.Hour))
			return err
		}},
		{"schedule.import", "p:" + name, 1, "", func() error {
			d, err := c.Schedules().Export(ctx, name)
			require.NoError(t, err)
			return c.Schedules().Import(ctx, d)
		}},
		{"schedule.delete", "p:" + name, 1, "", func() error { return c.Schedules().Delete(ctx, name) }},
		{"gate.release", name, 1, "fence", func() error {
			turn, err := gates.Acquire(ctx, name)
			require.NoError(t, err)
			fence = turn.Fence()
			_, err = gates.ForceRelease(ctx, name, fence)
			return err
		}},
		{"gate.repair", name, 1, "tokens from", func() error { _, err := gates.Repair(ctx, name, 0); return err }},
		{"gate.remove", name, 1, "", func() error { _, err := gates.Remove(ctx, name, true); return err }},
	} {
		require.NoError(t, s.do(), s.operation)
		e := newestAudit(t, c)
		require.Equal(t, s.operation, e.Operation)
		require.Equal(t, s.name, e.Name, s.operation)
		require.Equal(t, s.count, e.Count, s.operation)
		require.Contains(t, e.Detail, s.detail, s.operation)
		require.Equal(t, "billing", e.By)
		require.Equal(t, wakebelltype.AuditViaProcess, e.Via)
		require.Empty(t, e.Error)
	}
	n := 0
	for _, err := range c.Audit(ctx, wakebelltype.AuditFilter{}, wakebelltype.Page{Limit: 5}) {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 5, n)
}

// RecordChange takes no operation that has an entry of its own.
func TestOnlyChangesOfManyCallsAreReported(t *testing.T) {
	t.Parallel()
	name, ctx := redistest.Name(t), t.Context()
	c, err := wakebell.NewClient(conntest.New(t, redistest.Shared(t), connection.Config{Audit: wakebelltype.AuditConfig{Key: "audit:" + name}}))
	require.NoError(t, err)
	for _, wrong := range []wakebelltype.Change{
		{Operation: wakebelltype.AuditTopicPause, Name: name, Count: 1},
		{Operation: "", Name: name, Count: 1},
		{Operation: wakebelltype.AuditTopicCancel, Count: 1},
		{Operation: wakebelltype.AuditTopicCancel, Name: name, Count: -1},
	} {
		require.ErrorIs(t, c.RecordChange(ctx, wrong), wakebell.ErrInvalid)
	}
	require.NoError(t, c.RecordChange(ctx, wakebelltype.Change{Operation: wakebelltype.AuditTopicCancel, Name: name, Error: "nothing was done"}))
	require.Zero(t, newestAudit(t, c))
	require.NoError(t, c.RecordChange(ctx, wakebelltype.Change{Operation: wakebelltype.AuditTopicCancel, Name: name, Count: 2, Error: "interrupted"}))
	e := newestAudit(t, c)
	require.EqualValues(t, 2, e.Count)
	require.Equal(t, "interrupted", e.Error)
}

func newestAudit(t *testing.T, c *wakebell.Client) (newest wakebelltype.AuditEntry) {
	t.Helper()
	for e, err := range c.Audit(t.Context(), wakebelltype.AuditFilter{Last: 1}, wakebelltype.Page{}) {
		require.NoError(t, err)
		newest = e
	}
	return newest
}

// A start of a node puts its schedules again; only what it deletes is an operation.
func TestReconcilingIsAuditedWhenItDeletes(t *testing.T) {
	t.Parallel()
	name, ctx := redistest.Name(t), t.Context()
	cfg := connection.Config{Prefix: name + ":", Audit: wakebelltype.AuditConfig{Key: "audit:" + name}}
	c, err := wakebell.NewClient(conntest.New(t, redistest.Shared(t), cfg))
	require.NoError(t, err)
	s := recurring.Schedule{Name: "s", Topic: "t", Rule: recurring.Rule{Every: time.Hour}}
	_, err = c.Schedules().Reconcile(ctx, "billing", s)
	require.NoError(t, err)
	require.Zero(t, newestAudit(t, c))
	_, err = c.Schedules().Reconcile(ctx, "billing")
	require.NoError(t, err)
	e := newestAudit(t, c)
	require.EqualValues(t, "schedule.delete", e.Operation)
	require.Equal(t, "reconciled by: billing", e.Detail)
}

// An entry that cannot be written does not fail its operation, and an operation that
// fails has no entry.
func TestOperationDoesNotDependOnItsEntry(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	name, ctx := redistest.Name(t), t.Context()
	log := slog.New(slog.DiscardHandler)
	c, err := wakebell.NewClient(conntest.New(t, rdb, connection.Config{Audit: wakebelltype.AuditConfig{Key: "audit:" + name}, Logger: log}))
	require.NoError(t, err)
	require.NoError(t, rdb.Set(ctx, "audit:"+name, "x", 0).Err())
	_, err = c.Pause(ctx, name, "", "")
	require.NoError(t, err)
	for _, err := range c.Audit(ctx, wakebelltype.AuditFilter{}, wakebelltype.Page{}) {
		require.ErrorIs(t, err, wakebell.ErrWrongType)
	}
	require.NoError(t, rdb.Del(ctx, "audit:"+name).Err())
	require.NoError(t, rdb.Set(ctx, "timers_control:"+name, "x", 0).Err())
	_, err = c.Resume(ctx, name)
	require.ErrorIs(t, err, wakebell.ErrWrongType)
	require.Zero(t, newestAudit(t, c))

	_, err = connection.New(rdb, connection.Config{Audit: wakebelltype.AuditConfig{Key: "timers_dead"}})
	require.ErrorIs(t, err, wakebell.ErrInvalid)
	for _, err := range (*wakebell.Client)(nil).Audit(context.WithoutCancel(ctx), wakebelltype.AuditFilter{}, wakebelltype.Page{}) {
		require.ErrorIs(t, err, wakebell.ErrInvalid)
	}
}
