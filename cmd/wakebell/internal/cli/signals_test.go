package cli

import (
	"context"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSignalsSoonAfterFirstCountAsFirst(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		after  []time.Duration // the instants of the signals
		first  int             // how often the first signal was acted on
		forced bool
	}{
		"none":                         {nil, 0, false},
		"one":                          {[]time.Duration{0}, 1, false},
		"two at once":                  {[]time.Duration{0, 0}, 1, false},
		"two within a millisecond":     {[]time.Duration{0, time.Millisecond}, 1, false},
		"many within the grace":        {[]time.Duration{0, 1, 2, 3, signalGrace - 1}, 1, false},
		"a second after the grace":     {[]time.Duration{0, signalGrace}, 1, true},
		"a pair, and a later one":      {[]time.Duration{0, 1, 2 * signalGrace}, 1, true},
		"a late first signal and pair": {[]time.Duration{time.Hour, time.Hour + time.Millisecond}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				signals := make(chan os.Signal)
				first, forced := 0, false
				go awaitSignals(ctx, signals, func() { first++ }, func() { forced = true })
				began := time.Now()
				for _, after := range test.after {
					<-time.After(time.Until(began.Add(after)))
					signals <- syscall.SIGTERM
				}
				synctest.Wait()
				require.Equal(t, test.first, first)
				require.Equal(t, test.forced, forced)
			})
		})
	}
}
