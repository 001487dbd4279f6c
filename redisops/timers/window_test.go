package timers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWindowThatSlowsIsTriedLessAndLessOften(t *testing.T) {
	t.Parallel()
	w, now, tries := window{}, time.Unix(0, 0), 0
	for now.Before(time.Unix(600, 0)) {
		waits := w.count(now)
		now = now.Add(300 * time.Microsecond)
		if waits {
			w.gathered(now, 1)
			if !w.open {
				tries++
			}
		}
	}
	require.Equal(t, 15, tries, "after 1, 2, 4 … 60 s")
	require.Equal(t, maxPause, w.pause)
}
