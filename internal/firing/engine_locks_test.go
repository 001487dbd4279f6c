package firing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A foreign beat is respected while it renews its lock, and counts as dead
// 330 s after it has stopped renewing (weaknesses 1 and 2).
func TestForeignLock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		renew := func() { w.rdb.Set(t.Context(), "redbeat::lock", "foreign", 1500*time.Second) }
		renew()
		w.put("a", 60*time.Second, nil)
		w.engine(nil)
		for range 4 {
			w.advance(250 * time.Second)
			require.Empty(t, w.recorded())
			renew()
		}
		w.advance(325 * time.Second)
		require.Empty(t, w.recorded())
		w.advance(15 * time.Second)
		require.Contains(t, w.recorded(), "#1+")
		w.advance(60 * time.Second)
		require.Contains(t, w.recorded(), "#2")
		renew() // the foreign beat runs again
		w.advance(70 * time.Second)
		require.Empty(t, w.recorded())
		require.NoError(t, w.rdb.Del(t.Context(), "redbeat::lock").Err())
		w.advance(5 * time.Second)
		require.Contains(t, w.recorded(), "#3")
	})
}

// Engines with the same token hold the lock together, and all of them fire.
func TestOwnLock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		own := func(c *Config) { c.Token = "fleet" }
		stop := w.engine(own)
		w.engine(own)
		w.put("a", 5*time.Second, nil)
		w.advance(time.Second)
		require.Equal(t, "fleet", w.rdb.Get(t.Context(), "redbeat::lock").Val())
		require.Positive(t, w.rdb.PTTL(t.Context(), "redbeat::lock").Val())
		stop()
		w.advance(9500 * time.Millisecond)
		require.Equal(t, "a@5#1 a@10#2", w.recorded())
	})
}
