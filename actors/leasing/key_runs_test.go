package leasing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
)

// TestOnlyPerKeyOneAloneHasKeyRuns checks with which limits an exchange may lease a key run.
func TestOnlyPerKeyOneAloneHasKeyRuns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flow exchange.Flow
		want int
	}{
		"none":             {exchange.Flow{}, 0},
		"one":              {exchange.Flow{PerKey: 1}, 10},
		"with RateLimit":   {exchange.Flow{PerKey: 1, RateLimit: 5, RatePer: time.Second}, 10},
		"two":              {exchange.Flow{PerKey: 2}, 0},
		"with MaxInFlight": {exchange.Flow{PerKey: 1, MaxInFlight: 5}, 0},
		"with FairKeys":    {exchange.Flow{PerKey: 1, FairKeys: 1}, 0},
		"with a key rate":  {exchange.Flow{PerKey: 1, KeyRateLimit: 5, KeyRatePer: time.Second}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.open(Config{Policy: &Policy{KeyRun: 10}}, Settings{
				Flow: c.flow, MaxConcurrent: 5, LeaseTTL: 10 * time.Second, PollingInterval: time.Second, MaxPollingInterval: time.Second,
			}, nil)
			f, _ := w.flight(nil)
			require.Equal(t, c.want, f.Request.KeyRun)
		})
	}
}
