package remote_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Recurring schedules of a peer reach only the Celery queues in the node's
// configuration, for all of their options.
func TestCeleryQueuesOfPeers(t *testing.T) {
	t.Parallel()
	name := redistest.Name(t)
	n := serve(t, remote.Config{Tokens: map[string]string{secret: "mallory"}, CeleryQueues: []string{name + "open"}})
	closed := serve(t, withToken())
	peer, here := dial(t, n).Schedules(), n.Client().Schedules()
	hourly := recurring.Rule{Every: time.Hour}
	task := func(options map[string]any) recurring.Schedule {
		return recurring.Celery(name, "tasks.add", hourly, nil, nil, options)
	}
	open := map[string]any{"queue": name + "open"}
	for what, options := range map[string]map[string]any{
		"no queue":                nil,
		"another queue":           {"queue": name + "any"},
		"a list of another":       {"queue": name + "open\x06\x163"},
		"the key in other case":   {"Queue": name + "any", "queue": name + "open"},
		"another routing key":     {"queue": name + "open", "routing_key": name + "any"},
		"an exchange":             {"queue": name + "open", "exchange": name + "any"},
		"a router of Python's":    {"queue": name + "open", "router": "x"},
		"a queue that is no text": {"queue": map[string]any{"name": name + "any"}},
	} {
		err := peer.Put(t.Context(), task(options))
		require.ErrorIs(t, err, wakebell.ErrInvalid, what)
		require.ErrorIs(t, dial(t, closed).Schedules().Put(t.Context(), task(options)), wakebell.ErrInvalid, what)
	}
	require.ErrorIs(t, dial(t, closed).Schedules().Put(t.Context(), task(open)), wakebell.ErrInvalid, "none is open by default")
	twice, err := convert.RecurringMessage(task(open))
	require.NoError(t, err)
	twice.Celery.Options = []byte(`{"queue":"` + name + `any","queue":"` + name + `open"}`)
	_, err = unary(t, n, rpc.TimersClient.PutRecurring, &messages.PutRecurringRequest{Schedules: []*messages.Recurring{twice}})
	require.ErrorContains(t, err, "duplicate option")

	require.NoError(t, peer.Put(t.Context(), task(open)))
	_, err = peer.RunNow(t.Context(), name)
	require.NoError(t, err)
	dump, err := peer.Export(t.Context(), name)
	require.NoError(t, err)

	// A peer cannot fire a schedule of the node onto a queue that is closed to peers.
	require.NoError(t, here.Put(t.Context(), task(map[string]any{"queue": name + "any"})))
	_, err = peer.RunNow(t.Context(), name)
	require.ErrorContains(t, err, "not open to peers")
	_, err = peer.Backfill(t.Context(), name, time.Now().Add(-9*time.Hour), time.Now())
	require.ErrorContains(t, err, "not open to peers")
	foreign, err := here.Export(t.Context(), name)
	require.NoError(t, err)
	require.ErrorIs(t, peer.Import(t.Context(), foreign), wakebell.ErrInvalid)
	require.NoError(t, peer.Import(t.Context(), dump))
	rdb := redistest.Shared(t)
	require.Zero(t, rdb.Exists(t.Context(), name+"any", "celery", "_kombu.binding."+name+"any").Val())
	require.EqualValues(t, 1, rdb.LLen(t.Context(), name+"open").Val())
	require.NoError(t, peer.Delete(t.Context(), name))
}

// A peer of a System with a prefix sees and changes no schedule of another prefix.
func TestPeersOfPrefix(t *testing.T) {
	t.Parallel()
	name := redistest.Name(t)
	start := func(prefix string) *node {
		n := &node{log: &lines{}, topic: wakebell.NewTopic[string](name), conn: connection.Config{Prefix: prefix, Keys: wakebelltype.Keys{Beat: name + ":"}}}
		return n.start(t, withToken(), wakebell.Config{})
	}
	billing, mail := start("billing-"), start("mail-")
	r := billing.topic.Recurring("r", recurring.Rule{Every: time.Hour}, "x")
	require.NoError(t, billing.Client().Schedules().Put(t.Context(), r))
	peer := dial(t, mail).Schedules()
	for state, err := range peer.List(t.Context(), wakebelltype.Page{}) {
		require.NoError(t, err)
		require.Fail(t, "it is not of mail", state.Name)
	}
	for _, other := range []string{"r", "billing-r", "../billing-r"} {
		_, err := peer.Get(t.Context(), other)
		require.ErrorIs(t, err, recurring.ErrNotFound)
		_, err = peer.RunNow(t.Context(), other)
		require.ErrorIs(t, err, recurring.ErrNotFound)
		require.ErrorIs(t, peer.Delete(t.Context(), other), recurring.ErrNotFound)
		require.ErrorIs(t, peer.Pause(t.Context(), other), recurring.ErrNotFound)
	}
	require.NoError(t, peer.Put(t.Context(), r))
	run, err := peer.RunNow(t.Context(), "r")
	require.NoError(t, err)
	require.Equal(t, "r", run.Name)
	state, err := billing.Client().Schedules().Get(t.Context(), "r")
	require.NoError(t, err)
	require.Zero(t, state.Runs)
	require.EqualValues(t, 1, redistest.Shared(t).ZCard(t.Context(), "timers_timeline:mail-"+name).Val())
}

// A repeated request with the same key fires once.
func TestRepeatedRequestsForRunsFireOnce(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	name := redistest.Name(t)
	s := dial(t, n).Schedules()
	require.NoError(t, s.Put(t.Context(), n.topic.Recurring(name, recurring.Rule{Every: time.Hour, Start: time.Unix(0, 0)}, "x")))
	first, err := unary(t, n, rpc.TimersClient.RunRecurring, &messages.RunRecurringRequest{Name: name, Key: "k"})
	require.NoError(t, err)
	again, err := unary(t, n, rpc.TimersClient.RunRecurring, &messages.RunRecurringRequest{Name: name, Key: "k", Request: 7})
	require.NoError(t, err)
	require.Equal(t, first.GetDue().AsTime(), again.GetDue().AsTime())
	require.Equal(t, first.GetRun(), again.GetRun())
	require.Equal(t, first.GetFired().AsTime(), again.GetFired().AsTime())

	ctx := remote.WithKey(t.Context(), "b")
	day := time.Now().Truncate(24 * time.Hour)
	for range 2 {
		fired, err := s.Backfill(ctx, name, day.Add(-240*time.Hour), day)
		require.NoError(t, err)
		require.Equal(t, 240, fired)
	}
	state, err := s.Get(t.Context(), name)
	require.NoError(t, err)
	require.EqualValues(t, 241, state.Runs)
	_, err = s.Backfill(ctx, name, day.Add(-24*time.Hour), day)
	require.ErrorIs(t, err, wakebell.ErrConflict, "the key is that of another call")
	require.NoError(t, s.Delete(t.Context(), name))
}

// Rules that need much CPU are refused, and an honest client is served meanwhile.
func TestRulesWithoutEnd(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	honest, name := dial(t, n), redistest.Name(t)
	peer := dial(t, n).Schedules()
	// Its instants have the minute in which it begins.
	otherMinute := fmt.Sprintf("FREQ=SECONDLY;INTERVAL=3600;BYMINUTE=%d", (time.Now().Minute()+30)%60)
	rules := []string{"FREQ=DAILY;COUNT=10000000", "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", otherMinute, "FREQ=YEARLY;BYEASTER=-300"}
	refused := make(chan error, 72)
	for i := range cap(refused) {
		go func() {
			refused <- peer.Put(t.Context(), n.topic.Recurring(name, recurring.Rule{RRule: rules[i%len(rules)]}, "x"))
		}()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err := honest.Stats(ctx, n.topic.Name())
	require.NoError(t, err)
	for range cap(refused) {
		require.ErrorIs(t, <-refused, wakebell.ErrInvalid)
	}
}
