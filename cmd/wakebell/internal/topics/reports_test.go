package topics

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestReportsOfNodesInCell(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	open := func(node string, until time.Time) wakebelltype.NodeReport {
		return wakebelltype.NodeReport{Node: node, State: wakebelltype.NodeState{
			Breaker: "open", BreakerSince: at, BreakerUntil: until, BreakerReason: "20 of 20 deliveries failed: no route",
		}}
	}
	state := func(s wakebelltype.NodeState) wakebelltype.NodeReport {
		return wakebelltype.NodeReport{Node: "c/3/x", State: s}
	}
	const since, why = " since 2026-01-02T03:04:05Z, until 2026-01-02T03:05:05Z: ", "20 of 20 deliveries failed: no route"
	for name, c := range map[string]struct {
		want    string
		reports []wakebelltype.NodeReport
	}{
		"nothing":          {"", []wakebelltype.NodeReport{state(wakebelltype.NodeState{Breaker: "closed", Options: wakebelltype.Settings{MaxConcurrent: 9}})}},
		"no limits":        {"", []wakebelltype.NodeReport{state(wakebelltype.NodeState{Options: tuning.Defaults()})}},
		"a node":           {"breaker open on a/1" + since + why, []wakebelltype.NodeReport{open("a/1/x", at.Add(time.Minute))}},
		"several":          {"breaker open on 2 nodes" + since + why, []wakebelltype.NodeReport{open("a/1/x", at.Add(time.Hour)), open("b/2/x", at.Add(time.Minute))}},
		"concurrency":      {"concurrency=5", []wakebelltype.NodeReport{state(wakebelltype.NodeState{Concurrency: 5}), state(wakebelltype.NodeState{})}},
		"its range":        {"concurrency=5-9", []wakebelltype.NodeReport{state(wakebelltype.NodeState{Concurrency: 5}), state(wakebelltype.NodeState{Concurrency: 9})}},
		"a group":          {"group=mail weight=9", []wakebelltype.NodeReport{state(wakebelltype.NodeState{Group: "mail", Weight: 9}), state(wakebelltype.NodeState{Group: "mail", Weight: 9})}},
		"an expiry":        {"expire-after=1m30s", []wakebelltype.NodeReport{state(wakebelltype.NodeState{ExpireAfter: 90 * time.Second})}},
		"limits of a node": {"per-key=2 key-rate-limit=5 key-rate-per=1s", []wakebelltype.NodeReport{state(wakebelltype.NodeState{Options: wakebelltype.Settings{PerKey: 2, KeyRateLimit: 5, KeyRatePer: time.Second}})}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, reportText(output.Screen{}, wakebelltype.Overview{Reports: c.reports}))
		})
	}
	line := reportLines([]wakebelltype.NodeReport{open("a/1/x", at)})[0]
	require.Equal(t, "2026-01-02T03:04:05Z", line.BreakerUntil)
	require.Empty(t, line.ExpireAfter)
	require.Equal(t, "1m30s", reportLines([]wakebelltype.NodeReport{state(wakebelltype.NodeState{ExpireAfter: 90 * time.Second})})[0].ExpireAfter)
	require.Equal(t, output.Bad, reportStyle("breaker open"))
	require.Equal(t, output.Plain, reportStyle("concurrency=5"))
}
