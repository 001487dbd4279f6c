package connection

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

func TestClientAsksAnotherSentinelWhenItsSentinelIsSilent(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	asked, other := redistest.StartSentinel(t, master.Addr, 1), redistest.StartSentinel(t, master.Addr, 1)
	rdb := redis.NewFailoverClient(FailoverOptions(&redis.FailoverOptions{
		MasterName: redistest.MasterName, SentinelAddrs: []string{asked.Addr, other.Addr},
		DialTimeout: 250 * time.Millisecond, ReadTimeout: 250 * time.Millisecond,
	}))
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	answers := func() bool { return rdb.Ping(t.Context()).Err() == nil }
	other.Pause()
	require.Eventually(t, answers, time.Minute, 10*time.Millisecond)
	other.Resume()

	asked.Pause()
	t.Cleanup(asked.Resume)
	require.NoError(t, master.Client(t).Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err())
	require.Eventually(t, answers, time.Minute, 10*time.Millisecond, "the client goes on asking the silent Sentinel")
}

func TestSearchOfMasterOutlastsSilenceOfSentinel(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ given, want redis.FailoverOptions }{
		"defaults":  {redis.FailoverOptions{}, redis.FailoverOptions{DialTimeout: 12 * time.Second, ReadTimeout: time.Second, DialerRetries: 1}},
		"own":       {redis.FailoverOptions{DialTimeout: time.Second, ReadTimeout: 2 * time.Second, DialerRetries: 3, MaxRetries: 1}, redis.FailoverOptions{DialTimeout: 13 * time.Second, ReadTimeout: 2 * time.Second, DialerRetries: 3}},
		"no retry":  {redis.FailoverOptions{MaxRetries: -1}, redis.FailoverOptions{DialTimeout: 6 * time.Second, ReadTimeout: time.Second, DialerRetries: 1}},
		"unbounded": {redis.FailoverOptions{DialTimeout: -1}, redis.FailoverOptions{DialTimeout: -1, ReadTimeout: time.Second, DialerRetries: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given := tc.given
			o := FailoverOptions(&given)
			require.Equal(t, tc.given, given, "the options of the caller")
			require.Equal(t, []any{tc.want.DialTimeout, tc.want.ReadTimeout, tc.want.DialerRetries}, []any{o.DialTimeout, o.ReadTimeout, o.DialerRetries})
		})
	}
}

func TestSilentServerIsNotDialledForATimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dialled := 0
		d := &dials{timeout: time.Second, dial: func(ctx context.Context, _, addr string) (net.Conn, error) {
			dialled++
			if addr == "refuses" {
				return nil, errors.New("connection refused")
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		dial := func(ctx context.Context, addr string) error {
			_, err := d.Dial(ctx, "tcp", addr)
			return err
		}
		hurried, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.ErrorIs(t, dial(hurried, "silent"), context.DeadlineExceeded)
		began := time.Now()
		require.ErrorIs(t, dial(t.Context(), "silent"), context.DeadlineExceeded, "dialled although an impatient caller gave up")
		require.Equal(t, time.Second, time.Since(began))
		require.ErrorIs(t, dial(t.Context(), "silent"), context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began), "at once")
		require.Equal(t, 2, dialled)

		require.Error(t, dial(t.Context(), "refuses"))
		require.Error(t, dial(t.Context(), "refuses"))
		require.Equal(t, 4, dialled, "one that refuses may accept at any time")

		<-time.After(time.Second)
		require.Error(t, dial(t.Context(), "silent"))
		require.Equal(t, 5, dialled)
		require.Len(t, d.silent, 1)
	})
}
