package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
)

// A demo takes three times as long as it says, so that a machine that stalls for
// a moment changes nothing in its story.
func TestDemo(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"embedded", "a server"} {
		t.Run(where, func(t *testing.T) {
			b := setup(t)
			args := []string{"demo"}
			if where == "a server" {
				args = b.args([]string{"demo", "--prefix", b.topic + "/"})
			}
			began := time.Now()
			var out, errs bytes.Buffer
			a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, forced: t.Context(), demoPace: 3}
			root := a.root()
			root.SetArgs(args)
			require.Zero(t, a.exitCode(root.ExecuteContextC(t.Context())), errs.String())
			require.Empty(t, errs.String(), "no noise")
			require.NotContains(t, out.String(), "\x1b", "no colour outside a terminal")
			for _, s := range story {
				require.Regexp(t, `(?m)^`+s.id+` +`+s.ending+` +`, out.String())
			}
			require.Contains(t, out.String(), "All went as told")
			require.Greater(t, time.Since(began), 30*time.Second)
			require.Empty(t, b.fine("topics", "--discover", "--prefix", b.topic+"/", "-o", "json"), "it leaves nothing")
		})
	}
}

func TestDemoSaysWhatDidNotHappen(t *testing.T) {
	b := setup(t)
	var out, errs bytes.Buffer
	a := &app{stdout: &out, stderr: &errs}
	d := &demo{client: b.client(), narrator: newNarrator(&out, false), records: map[string]*record{}}
	d.topic = wakebell.NewTopic[string](b.topic)
	for _, s := range story {
		d.records[s.id] = &record{attempts: s.attempts, ending: s.ending}
	}
	require.NoError(t, d.conclude(t.Context(), a))
	d.records["tea"].ending = ""
	err := d.conclude(t.Context(), a)
	require.EqualError(t, err, "tea should have fired after 1 attempts, but nothing came of it after 1")
	b.fine("schedule", "-t", "TOPIC", "--in", "1h")
	require.ErrorContains(t, d.conclude(t.Context(), a), "1 timers are left in Redis")
}

func TestBench(t *testing.T) {
	for _, where := range []string{"embedded", "a server"} {
		for _, spread := range []string{"0s", "300ms"} {
			t.Run(where+" "+spread, func(t *testing.T) {
				b := setup(t)
				if where == "embedded" {
					b.redis = where
				}
				out := b.fine("bench", "--n", "1500", "--payload", "10", "--max-concurrent", "60", "--spread", spread, "-t", b.topic)
				require.Equal(t, 1, strings.Count(out, "\n"))
				var r map[string]any
				require.NoError(t, json.Unmarshal([]byte(out), &r))
				for field, want := range map[string]any{"n": 1500.0, "payload_bytes": 10.0, "max_concurrent": 60.0, "handled": 1500.0, "duplicates": 0.0} {
					require.Equal(t, want, r[field], field)
				}
				for _, field := range []string{"seconds", "timers_per_s", "client_cpu_us_per_timer", "redis_calls_per_timer", "allocs_per_timer", "lateness_ms_p50", "lateness_ms_p99"} {
					require.Positive(t, r[field], field)
				}
				for _, field := range []string{"redis_cpu_us_per_timer", "redis_commands_per_timer"} {
					require.Contains(t, r, field)
					require.Equal(t, where == "embedded", r[field] == nil, field)
				}
				left, err := b.rdb.Keys(t.Context(), "timers_[tpldh]*:"+b.topic+"*").Result()
				require.NoError(t, err)
				require.Empty(t, left, "but for exchange keys, which end by themselves")
				require.NotContains(t, b.fine("topics"), b.topic)
			})
		}
	}
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 7, quantile([]int64{7}, 0.99), 0)
	require.InDelta(t, 2, quantile([]int64{1, 2}, 0.5), 0)
	require.InDelta(t, 100, quantile([]int64{1, 100}, 0.99), 0)
}
