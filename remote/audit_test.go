package remote_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestAuditNamesPeers checks that a node records peers under the owners of their
// tokens, for operations and for requests of the gateway, and that a peer sees what
// the node's prefix has.
func TestAuditNamesPeers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	name := redistest.Name(t)
	prefix, audit := name+":", wakebelltype.AuditConfig{Key: "audit:" + name, Caller: "node"}
	n := (&node{
		log: &lines{}, topic: wakebell.NewTopic[string](name), conn: connection.Config{Prefix: prefix, Audit: audit},
	}).start(t, withToken(), wakebell.Config{})
	c := dial(t, n)

	_, err := c.Pause(wakebell.WithCaller(ctx, "forged"), "t", "", "maintenance")
	require.NoError(t, err)
	require.NoError(t, c.Schedules().Put(ctx, recurring.Schedule{Name: "s", Topic: "t", Rule: recurring.Rule{Every: time.Hour}}))
	_, err = c.Redrive(ctx, "t", wakebelltype.RedriveOptions{}) // a stream
	require.NoError(t, err)
	_, err = n.Client().Resume(ctx, "t")
	require.NoError(t, err)
	turn, err := n.Gates().Acquire(ctx, name)
	require.NoError(t, err)
	_, err = c.Gates().ForceRelease(ctx, name, turn.Fence())
	require.NoError(t, err)
	change := wakebelltype.Change{Operation: wakebelltype.AuditTopicCancel, Name: "t", Count: 2, Detail: `timers whose ids begin with "a"`}
	for range 2 { // the second is a repetition
		require.NoError(t, c.RecordChange(remote.WithKey(wakebell.WithCaller(ctx, "forged"), "k"), change))
	}
	change.Operation = wakebelltype.AuditTopicPause
	require.ErrorIs(t, c.RecordChange(ctx, change), wakebell.ErrInvalid)
	elsewhere, err := wakebell.NewClient(conntest.New(t, redistest.Shared(t), connection.Config{Audit: audit}))
	require.NoError(t, err)
	_, err = elsewhere.Resume(ctx, "of another prefix")
	require.NoError(t, err)

	list := func(f wakebelltype.AuditFilter, p wakebelltype.Page) (found []string, cursor string) {
		for e, err := range c.Audit(ctx, f, p) {
			require.NoError(t, err)
			require.NotZero(t, e.At)
			from, _, _ := strings.Cut(e.From, "/")
			if e.Via == wakebelltype.AuditViaProcess {
				from = "process"
			}
			found = append(found, strings.Join([]string{string(e.Operation), e.Name, e.By, string(e.Via), from, e.Detail}, " "))
			cursor = e.Cursor
		}
		return found, cursor
	}
	all := []string{
		"topic.pause t tests token 127.0.0.1 reason: maintenance",
		"schedule.put s tests token 127.0.0.1 ",
		"topic.redrive t tests token 127.0.0.1 ",
		"topic.resume t node process process ",
		"gate.release " + name + " tests token 127.0.0.1 fence",
		`topic.cancel t tests token 127.0.0.1 timers whose ids begin with "a"`,
	}
	found, _ := list(wakebelltype.AuditFilter{}, wakebelltype.Page{})
	require.Len(t, found, len(all))
	for i := range all {
		require.Contains(t, found[i], all[i])
	}
	first, cursor := list(wakebelltype.AuditFilter{}, wakebelltype.Page{Limit: 2})
	require.Equal(t, found[:2], first)
	rest, _ := list(wakebelltype.AuditFilter{}, wakebelltype.Page{After: cursor})
	require.Equal(t, found[2:], rest)
	last, _ := list(wakebelltype.AuditFilter{Last: 2}, wakebelltype.Page{})
	require.Equal(t, found[4:], last)
	named, _ := list(wakebelltype.AuditFilter{Name: "t", By: "tests", Since: time.Now().Add(-time.Hour)}, wakebelltype.Page{})
	require.Equal(t, []string{found[0], found[2], found[5]}, named)
	for _, last := range []int{-1, 1001} {
		for _, err := range c.Audit(ctx, wakebelltype.AuditFilter{Last: last}, wakebelltype.Page{}) {
			require.ErrorIs(t, err, wakebell.ErrInvalid)
		}
	}
}

// A node without credentials records where a peer comes from.
func TestAuditOfNodeWithoutTokens(t *testing.T) {
	t.Parallel()
	name := redistest.Name(t)
	n := (&node{
		log: &lines{}, topic: wakebell.NewTopic[string](name), conn: connection.Config{Audit: wakebelltype.AuditConfig{Key: "audit:" + name}},
	}).start(t, remote.Config{}, wakebell.Config{})
	c := dial(t, n)
	_, err := c.Resume(t.Context(), name)
	require.NoError(t, err)
	for e, err := range c.Audit(t.Context(), wakebelltype.AuditFilter{}, wakebelltype.Page{}) {
		require.NoError(t, err)
		require.Equal(t, wakebelltype.AuditViaNetwork, e.Via)
		require.Empty(t, e.By)
		require.Equal(t, "127.0.0.1", e.From)
	}
}
