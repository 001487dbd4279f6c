package layout_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/recurring"
)

// TestDatabasesOfOneServerAreIsolated runs a topic, a queue and schedules of the same
// names in two databases. No message of a channel passes from one to the other, so nodes
// are counted and events are shown where they belong.
func TestDatabasesOfOneServerAreIsolated(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	databases := []*redis.Client{server.Client(t), server.Client(t, func(o *redis.Options) { o.DB = 1 })}
	topic, mail := wakebell.NewTopic[string]("orders"), queue.New[string]("mail")
	done := make(chan string, 10)
	stacktest.Launch(t, stacktest.Build(t, databases[1], wakebell.Config{
		Scheduler: &recurring.SchedulerConfig{},
		Handlers: []wakebell.Handler{
			wakebell.Handle(topic, func(_ context.Context, t wakebell.Timer[string]) error { done <- t.Body; return nil }),
			wakebell.HandleQueue(mail, func(_ context.Context, m wakebell.Timer[string]) error { done <- m.Body; return nil }),
		},
	}))
	nodes := func(rdb *redis.Client) int {
		all, err := stacktest.Client(t, rdb, connection.Config{}).Overview(t.Context(), "orders")
		require.NoError(t, err)
		return all[0].Nodes
	}
	stacktest.Eventually(t, func() bool { return nodes(databases[1]) == 1 })
	require.Zero(t, nodes(databases[0]), "the node is of another database")

	channels := databases[0].PubSubChannels(t.Context(), "*").Val()
	require.Len(t, channels, 3)
	for _, channel := range channels {
		require.Contains(t, channel, "@1")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watched := stacktest.Client(t, databases[1], connection.Config{}).Tail(ctx, "orders")
	published := databases[0].PSubscribe(ctx, "*")
	defer func() { _ = published.Close() }()
	_, err := published.Receive(ctx)
	require.NoError(t, err)
	for _, rdb := range databases {
		c := stacktest.Client(t, rdb, connection.Config{})
		_, err := topic.Schedule(ctx, c, "timer", wakebell.ID("a"))
		require.NoError(t, err)
		_, err = mail.Publish(ctx, c.Queues(), "message")
		require.NoError(t, err)
		require.NoError(t, c.Schedules().Put(ctx, topic.Recurring("yearly", recurring.Rule{Every: 8760 * time.Hour}, "run")))
	}
	require.ElementsMatch(t, []string{"timer", "message"}, []string{stacktest.Receive(t, done), stacktest.Receive(t, done)})
	seen := map[string]bool{}
	for message := range published.Channel() {
		seen[message.Channel] = true
		if len(seen) == 6 {
			break
		}
	}
	for _, channel := range []string{"timers_hint:%sorders", "mail::wakebell:hint%s", "redbeat::hint%s"} {
		for _, database := range []string{"", "@1"} {
			if database != "" && strings.HasPrefix(channel, "timers") {
				database += ":"
			}
			require.Contains(t, seen, fmt.Sprintf(channel, database))
		}
	}
	tailing := make(chan struct{})
	go func() {
		defer close(tailing)
		for _, err := range watched {
			if err != nil {
				return // the test ends
			}
		}
	}()
	for message := range published.Channel() {
		if strings.HasPrefix(message.Channel, "timers_events") {
			require.Equal(t, "timers_events:@1:orders", message.Channel)
			break
		}
	}
	cancel()
	<-tailing
}
