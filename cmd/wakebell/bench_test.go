package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
				require.Empty(t, left, "only exchange keys, which expire")
				require.NotContains(t, b.fine("topics"), b.topic)
			})
		}
	}
}
