package loglimit_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/loglimit"
)

func TestLimiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &loglimit.Limiter{Every: time.Minute, Each: 2, Total: 5}
		passes := func(key string) bool { _, ok := l.Allow(key); return ok }
		require.True(t, passes("a"))
		require.True(t, passes("a"))
		require.False(t, passes("a"), "the limit of one key")
		require.True(t, passes("b"))
		require.True(t, passes("b"))
		require.True(t, passes("c"))
		require.False(t, passes("d"), "the limit of all keys")
		<-time.After(time.Minute)
		skipped, ok := l.Allow("a")
		require.True(t, ok)
		require.Equal(t, 1, skipped)
		skipped, _ = l.Allow("a")
		require.Zero(t, skipped, "skipped lines are reported once")
	})
}

func TestKeysAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &loglimit.Limiter{}
		passed := 0
		for i := range 5000 {
			if _, ok := l.Allow(strconv.Itoa(i)); ok {
				passed++
			}
		}
		require.Equal(t, 1025, passed, "the keys beyond the bound share one line")
		<-time.After(time.Second)
		_, ok := l.Allow("another")
		require.True(t, ok)
	})
}
