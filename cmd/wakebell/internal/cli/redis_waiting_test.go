package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// saying returns a hook and the messages that it printed, with their instants.
func saying() (*waiting, func() []string) {
	var mu sync.Mutex
	var said []string
	began := time.Now()
	w := &waiting{budget: retryFor, say: func(what string) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, fmt.Sprintf("%v: %s", time.Since(began), what))
	}}
	return w, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return said
	}
}

// After a second of retries, the cause is printed once.
func TestCauseOfWaitIsPrinted(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 5), Port: 6379}, Err: syscall.ECONNREFUSED}
	for name, c := range map[string]struct {
		took time.Duration // of each try
		err  error
		want []string
	}{
		"refused":          {200 * time.Millisecond, refused, []string{"1s: redis at 10.0.0.5:6379 refuses connections; trying for another 4s"}},
		"loading":          {0, redisError("LOADING Redis is loading the dataset in memory"), []string{"1s: redis is unavailable: LOADING Redis is loading the dataset in memory; trying for another 4s"}},
		"slow and refused": {2600 * time.Millisecond, refused, []string{"2.6s: redis at 10.0.0.5:6379 refuses connections; trying for another 2s"}},
		"no answer":        {10 * time.Second, context.DeadlineExceeded, []string{"3s: redis does not answer; trying for another 2s"}},
		"fine":             {900 * time.Millisecond, nil, nil},
		"an error":         {900 * time.Millisecond, redisError("WRONGTYPE x"), nil},
		"nothing there":    {900 * time.Millisecond, redis.Nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, said := saying()
				try := w.ProcessHook(func(context.Context, redis.Cmder) error {
					<-time.After(c.took)
					return c.err
				})
				for began := time.Now(); time.Since(began) < retryFor; <-time.After(100 * time.Millisecond) {
					require.Equal(t, c.err, try(t.Context(), redis.NewCmd(t.Context(), "PING")))
				}
				w.stop()
				require.Equal(t, c.want, said())
			})
		})
	}
}

type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}

// Errors while dialling, such as a search for the master, count as well.
func TestFailedDialIsRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, said := saying()
		none := errors.New("redis: all sentinels specified in configuration are unreachable")
		dial := w.DialHook(func(context.Context, string, string) (net.Conn, error) { return nil, none })
		try := w.ProcessHook(func(ctx context.Context, _ redis.Cmder) error {
			<-time.After(300 * time.Millisecond)
			_, err := dial(ctx, "tcp", "FailoverClient")
			return err
		})
		for range 10 {
			require.ErrorIs(t, try(t.Context(), redis.NewCmd(t.Context(), "PING")), none)
		}
		w.stop()
		require.Equal(t, []string{"1s: redis is unavailable: " + none.Error() + "; trying for another 4s"}, said())
	})
}

// A server without TLS reads the first message of TLS as an unfinished command.
func TestWaitForTLSSaysThatServerMayHaveNone(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"rediss://10.0.0.5": "redis does not answer, or has no TLS at this port (use redis:// there)",
		"redis://10.0.0.5":  "redis does not answer",
	} {
		found, err := dial(url, tlsFlags{})
		require.NoError(t, err)
		w := &waiting{tls: encrypted(found.redis)}
		require.Equal(t, want, w.what())
		w.err = context.DeadlineExceeded
		require.Equal(t, want, w.what())
		require.NoError(t, found.redis.Close())
	}
}
