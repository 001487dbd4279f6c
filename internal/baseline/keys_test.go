package baseline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/recurring"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// The keys that a node writes, with their types and the form of what is in them:
// nodes of other versions read it. The bytes that Python processes share are compared
// with golden files of their own.
func TestKeys(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	useAll(t, rdb)
	var lines []string
	for _, key := range rdb.Keys(t.Context(), "*").Val() {
		lines = append(lines, formOf(t, rdb, key)...)
	}
	Require(t, "keys.txt", lines)
}

// useAll uses each kind of key once.
func useAll(t *testing.T, rdb *redis.Client) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	orders, mail := wakebell.NewTopic[string]("orders"), queue.New[string]("mail", queue.DeduplicateBy(strings.ToUpper))
	handled := make(chan string, 10)
	handle := func(ctx context.Context, timer wakebell.Timer[string]) error {
		defer func() { handled <- timer.Body }()
		switch timer.Body {
		case "dead":
			return wakebell.Reject(errors.New("no stock"))
		case "fails":
			_ = timer.Progress(ctx, 0.5, "half") // a message of a queue has none
			return errors.New("closed")
		}
		return nil
	}
	sys, err := wakebell.New(actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet })), conntest.New(t, rdb, connection.Config{Logger: quiet}), wakebell.Config{
		Handlers: []wakebell.Handler{
			wakebell.Handle(orders, handle, wakebell.RetryBackoff(time.Hour, time.Hour), wakebell.RateLimit(100, time.Hour, 100)),
			wakebell.HandleQueue(mail, handle, wakebell.KeepCompleted(10), wakebell.RetryBackoff(time.Hour, time.Hour)),
		},
	})
	require.NoError(t, err)
	require.NoError(t, sys.Start(t.Context()))
	c, ctx := sys.Client(), t.Context()
	at := wakebell.At(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))
	_, err = c.Schedule(ctx,
		orders.Draft("later", wakebell.ID("later"), at, wakebell.Header("h", "v")),
		orders.Draft("once", wakebell.ID("once"), at, wakebell.Once(time.Hour)),
		orders.Draft("first", wakebell.ID("first"), at, wakebell.Key("k")),
		orders.Draft("second", wakebell.ID("second"), at, wakebell.Key("k")),
		orders.Draft("debounced", wakebell.ID("debounced"), wakebell.Debounce(24*time.Hour, 24*time.Hour)),
		orders.Draft("fails", wakebell.ID("fails")), orders.Draft("dead", wakebell.ID("dead")))
	require.NoError(t, err)
	for _, body := range []string{"done", "dead", "fails"} {
		_, err = mail.Publish(ctx, c.Queues(), body)
		require.NoError(t, err)
	}
	require.NoError(t, c.Schedules().Put(ctx, orders.Recurring("nightly", recurring.Rule{Every: 24 * time.Hour}, "run")))
	_, err = c.Pause(ctx, "paused", "ann", "upgrade")
	require.NoError(t, err)
	turn, err := sys.Gates().Acquire(ctx, "border")
	require.NoError(t, err)
	require.NoError(t, turn.Release(ctx))
	for range 5 {
		select {
		case <-handled:
		case <-time.After(time.Minute):
			require.FailNow(t, "not handled")
		}
	}
	// A stop writes what is left within a second, which may not do on a busy machine.
	written := []string{"timers_history:orders", "mail::wakebell:history", "timers_counts:orders", "mail::wakebell:counts"}
	require.Eventually(t, func() bool { return rdb.Exists(ctx, written...).Val() == int64(len(written)) }, time.Minute, 10*time.Millisecond)
	require.NoError(t, sys.Stop()) // writes settlements, and what else is left
}

// varying has what differs from run to run, in the order in which it is replaced.
var varying = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`[0-9]+\.[0-9]+`), "0"},
	{regexp.MustCompile(`[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}|[0-9a-f]{16,}`), "ID"},
	{regexp.MustCompile(`[0-9]+`), "0"},
	{regexp.MustCompile(`^([A-Z]0)+$`), "A0"}, // latenesses: which buckets depends on the machine
}

// process is the name of a process at a gate, which has the name of the machine.
var process = regexp.MustCompile(`[^: "]+:[0-9]+:[0-9a-z]+`)

// passing has the keys that exist for minutes.
var passing = regexp.MustCompile(`^timers_(hint|backlog)|:exchange:|^timers_exchange`)

// formOf returns the key, its type, and its content without what differs from run to
// run.
func formOf(t *testing.T, rdb *redis.Client, key string) []string {
	t.Helper()
	if passing.MatchString(key) {
		return nil
	}
	kind := rdb.Type(t.Context(), key).Val()
	normal := func(text string) string {
		if strings.HasPrefix(key, "{gates}") {
			text = process.ReplaceAllString(text, "PROCESS")
		}
		for _, v := range varying {
			text = v.what.ReplaceAllString(text, v.with)
		}
		return text
	}
	name := normal(key)
	lines := []string{name + " " + kind}
	var content []string
	switch kind {
	case "hash":
		for field, value := range rdb.HGetAll(t.Context(), key).Val() {
			content = append(content, fmt.Sprintf("%q = %q", normal(field), normal(value)))
		}
	case "stream":
		for _, entry := range rdb.XRange(t.Context(), key, "-", "+").Val() {
			content = append(content, fmt.Sprintf("fields %q", slices.Sorted(maps.Keys(entry.Values))))
		}
	case "zset":
		content = rdb.ZRange(t.Context(), key, 0, -1).Val()
	case "set":
		content = rdb.SMembers(t.Context(), key).Val()
	case "list":
		content = rdb.LRange(t.Context(), key, 0, -1).Val()
	case "string":
		content = []string{rdb.Get(t.Context(), key).Val()}
	}
	for _, c := range content {
		if kind != "hash" && kind != "stream" {
			c = fmt.Sprintf("%q", normal(c))
		}
		lines = append(lines, name+": "+c)
	}
	return lines
}
