package demo

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/embedded"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/wakebelltype"
)

func newClient(t *testing.T) *wakebell.Client {
	t.Helper()
	client, err := wakebell.NewClient(conntest.New(t, redistest.Shared(t), connection.Config{}))
	require.NoError(t, err)
	return client
}

// The demo runs at a third of its speed, so that a machine that stalls for a moment
// does not change the scenario.
func TestDemo(t *testing.T) {
	t.Parallel()
	server := embedded.Start()
	t.Cleanup(server.Close)
	inside := server.Client()
	t.Cleanup(func() { _ = inside.Close() })
	for name, rdb := range map[string]redis.UniversalClient{"embedded": inside, "a server": redistest.Shared(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			var out bytes.Buffer
			at := connection.Config{Prefix: redistest.Name(t) + "/", Logger: slog.New(slog.DiscardHandler)}
			require.NoError(t, run(t.Context(), Settings{Redis: rdb, Embedded: name == "embedded", Connection: at, Out: &out, Screen: output.NewScreen(&out)}, 3))
			require.Equal(t, name == "embedded", strings.Contains(out.String(), "Redis runs inside this process"))
			require.NotContains(t, out.String(), "\x1b", "no colour outside a terminal")
			for _, s := range scenario {
				require.Regexp(t, `(?m)^`+s.id+` +`+s.ending+` +`, out.String())
			}
			require.Contains(t, out.String(), "Everything happened as expected")
			for line := range strings.Lines(out.String()) {
				require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 80, line)
			}
			require.Greater(t, time.Since(began), 30*time.Second)
			for topic, err := range newClient(t).Topics(t.Context(), true, wakebelltype.Page{}) {
				require.NoError(t, err)
				require.False(t, strings.HasPrefix(topic, at.Prefix), "the demo leaves no topics")
			}
		})
	}
}

func TestDemoReportsUnexpectedResults(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	d := &demo{client: newClient(t), narrator: newNarrator(&out, false), records: map[string]*record{}}
	d.topic = wakebell.NewTopic[string](redistest.Name(t))
	for _, s := range scenario {
		d.records[s.id] = &record{attempts: s.attempts, ending: s.ending}
	}
	require.NoError(t, d.conclude(t.Context(), &out, output.NewScreen(&out)))
	d.records["tea"].ending = ""
	err := d.conclude(t.Context(), &out, output.NewScreen(&out))
	require.EqualError(t, err, "tea: want fired after 1 attempts, got nothing after 1")
	_, err = d.topic.Schedule(t.Context(), d.client, "", wakebell.In(time.Hour))
	require.NoError(t, err)
	require.ErrorContains(t, d.conclude(t.Context(), &out, output.NewScreen(&out)), "1 timers are left in Redis")
}
