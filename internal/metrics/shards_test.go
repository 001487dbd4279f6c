package metrics

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/wakebell/wakebell/wakebelltype"
)

// TestShardsAreMeasuredOnRequest has the sums of the shards of a topic, or each shard.
func TestShardsAreMeasuredOnRequest(t *testing.T) {
	t.Parallel()
	const queue = "mail~4~1" // which is no shard
	for _, byShard := range []bool{false, true} {
		reader := sdk.NewManualReader()
		c := collector{New(Options{Provider: sdk.NewMeterProvider(sdk.WithReader(reader)), Shards: byShard}), reader}
		node := still()
		node.Counters = func() map[string]wakebelltype.Counters {
			return map[string]wakebelltype.Counters{"orders~4~0": {Acked: 1}, "orders~4~3": {Acked: 2}, queue: {Acked: 5}}
		}
		node.IsQueue = func(name string) bool { return name == queue }
		end := c.Observe(node)
		c.handle("orders~4~3")
		c.handle("orders~4~0")
		c.Sent(t.Context(), Publish, queue, 7, time.Now(), nil)

		require.Equal(t, map[string]float64{"orders": 3, queue: 5}, c.values(t, "wakebell.deliveries", destination))
		require.Equal(t, map[string]float64{"": 2}, c.values(t, "messaging.process.duration", destination))
		require.Equal(t, map[string]float64{queue: 7}, c.values(t, "messaging.client.sent.messages", destination))
		want := map[string]float64{"": 8}
		if byShard {
			want = map[string]float64{"0": 1, "3": 2, "": 5}
		}
		require.Equal(t, want, c.values(t, "wakebell.deliveries", partition))
		end()
	}
}
