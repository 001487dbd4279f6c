package dashboard_test

import (
	"context"
	"fmt"
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

// nodes returns the page of the nodes once they were asked.
func (s *site) nodes() (page string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		page = s.get("nodes")
		return strings.Contains(page, "topic?name=") || strings.Contains(page, "cannot be asked")
	}, patience, 10*time.Millisecond)
	return page
}

// A topic that Redis denies to the user does not keep the nodes of the others from being asked.
func TestNodesOfPermittedTopicsAreAsked(t *testing.T) {
	t.Parallel()
	s, client := openWith(t, "~timers_*shop*", "~timers_topics*", "~timers_audit", "&*shop*", "+@all")
	page := s.nodes()
	require.Contains(t, page, "topic?name=shop")
	require.NotContains(t, page, "topic?name=bank")
	findings, err := client.Diagnose(t.Context(), "bank", "shop")
	require.NoError(t, err)
	require.Equal(t, map[string]wakebelltype.Grade{"bank": wakebelltype.GradeUnknown, "shop": wakebelltype.GradeGood}, settingsGrades(findings))
}

// So does one whose channels alone are denied; what was not asked is named.
func TestNodesOfPermittedChannelsAreAsked(t *testing.T) {
	t.Parallel()
	s, client := openWith(t, "~*", "&*shop*", "+@all")
	var unasked *wakebelltype.UnaskedError
	answers, err := client.AskNodes(t.Context(), "bank", "shop")
	require.ErrorAs(t, err, &unasked)
	require.ErrorIs(t, err, wakebell.ErrChannelDenied)
	require.Equal(t, []string{"bank"}, unasked.Topics)
	require.Len(t, answers, 1)
	require.Equal(t, "shop", answers[0].Topic)
	_, err = client.AskNodes(t.Context(), "bank")
	require.ErrorAs(t, err, &unasked)
	page := s.nodes()
	require.Contains(t, page, "topic?name=shop")
	require.Contains(t, page, "ask the nodes of [&#34;bank&#34;]")
	findings, err := client.Diagnose(t.Context(), "bank", "shop")
	require.NoError(t, err)
	require.Equal(t, map[string]wakebelltype.Grade{"bank": wakebelltype.GradeUnknown, "shop": wakebelltype.GradeGood}, settingsGrades(findings))
}

// settingsGrades returns the grades of the settings of topics.
func settingsGrades(findings []wakebelltype.Finding) map[string]wakebelltype.Grade {
	grades := map[string]wakebelltype.Grade{}
	for _, f := range findings {
		if f.Check == "settings" {
			grades[f.Topic] = f.Grade
		}
	}
	return grades
}

// unrecorded is a client whose principal may not write entries of the audit.
type unrecorded struct{ *wakebell.Client }

func (unrecorded) RecordChange(context.Context, wakebelltype.Change) error {
	return fmt.Errorf("%w: tests may not operate", wakebell.ErrForbidden)
}

// A change without an entry in the audit says so.
func TestChangeThatIsNotRecordedSaysSo(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.schedule("bank", "a", time.Hour, "x")
	s.schedule("bank", "b", time.Hour, "x")
	s.serve(dashboard.Operators{Timers: unrecorded{s.client}}, func(c *dashboard.Config) { c.Writable = true })
	const said = "The audit has no entry of it: "
	for _, action := range []string{"run-now", "reschedule", "cancel"} {
		_, next := s.do(action, []string{"topic", "bank", "id", "a"}, "when", "2h")
		require.Contains(t, next, said, action)
	}
	_, next := s.do("schedule", []string{"topic", "bank"}, "topic", "bank", "when", "2h", "exists", "replace", "encoding", "text")
	require.Contains(t, next, said)
	_, next = s.do("bulk-run", []string{"topic", "bank"})
	require.Contains(t, next, said)
}
