package dashboard_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/dashboard"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// openWith serves a dashboard whose Redis user has these rights, beside a node with all rights
// that handles two topics.
func openWith(t *testing.T, rules ...string) (*site, *wakebell.Client) {
	t.Helper()
	server := redistest.Start(t)
	admin := server.Client(t)
	for user, rules := range map[string][]string{"node": {"~*", "&*", "+@all"}, "dash": rules} {
		args := []any{"ACL", "SETUSER", user, "reset", "on", ">secret"}
		for _, rule := range rules {
			args = append(args, rule)
		}
		require.NoError(t, admin.Do(t.Context(), args...).Err())
	}
	as := func(user string) *connection.Connection {
		o := *admin.Options()
		o.Username, o.Password, o.Protocol = user, "secret", 2
		rdb := redis.NewClient(&o)
		t.Cleanup(func() { require.NoError(t, rdb.Close()) })
		return conntest.New(t, rdb, connection.Config{})
	}
	node := as("node")
	all, err := wakebell.NewClient(node)
	require.NoError(t, err)
	handle := func(context.Context, wakebell.Timer[[]byte]) error { return nil }
	var handlers []wakebell.Handler
	for _, name := range []string{"bank", "shop"} {
		topic := wakebell.NewTopic[[]byte](name)
		handlers = append(handlers, wakebell.Handle(topic, handle))
		_, err := topic.Schedule(t.Context(), all, []byte("body"), wakebell.ID("one"), wakebell.In(time.Hour))
		require.NoError(t, err)
	}
	sys, err := wakebell.New(actor.NewActorSystem(), node, wakebell.Config{Handlers: handlers})
	require.NoError(t, err)
	require.NoError(t, sys.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, sys.Stop()) })
	client, err := wakebell.NewClient(as("dash"))
	require.NoError(t, err)
	s := open(t)
	s.serve(dashboard.Operators{Timers: client, Queues: client.Queues(), Schedules: client.Schedules()})
	return s, client
}

// A topic that Redis denies to the user does not keep the nodes of the others from being asked.
func TestNodesOfPermittedTopicsAreAsked(t *testing.T) {
	t.Parallel()
	s, client := openWith(t, "~timers_*shop*", "~timers_topics*", "~timers_audit", "&*shop*", "+@all")
	page := ""
	require.Eventually(t, func() bool {
		page = s.get("nodes")
		return strings.Contains(page, "topic?name=") || strings.Contains(page, "cannot be asked")
	}, patience, 10*time.Millisecond)
	require.Contains(t, page, "topic?name=shop")
	require.NotContains(t, page, "topic?name=bank")
	findings, err := client.Diagnose(t.Context(), "bank", "shop")
	require.NoError(t, err)
	grades := map[string]wakebelltype.Grade{}
	for _, f := range findings {
		if f.Check == "settings" {
			grades[f.Topic] = f.Grade
		}
	}
	require.Equal(t, map[string]wakebelltype.Grade{"bank": wakebelltype.GradeUnknown, "shop": wakebelltype.GradeGood}, grades)
}
