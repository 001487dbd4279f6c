package faultproxy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/faultproxy"
	"github.com/wakebell/wakebell/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func connect(t *testing.T, opts ...func(*redis.Options)) (*faultproxy.Proxy, *redis.Client) {
	t.Helper()
	p := faultproxy.Start(t, redistest.SharedAddr(t))
	return p, redistest.Shared(t, append(opts, func(o *redis.Options) { o.Addr = p.Addr })...)
}

func TestPassesEveryKindOfReply(t *testing.T) {
	t.Parallel()
	for _, protocol := range []int{2, 3} {
		_, rdb := connect(t, func(o *redis.Options) { o.Protocol = protocol })
		key, big := redistest.Name(t), strings.Repeat("x", 300_000)
		require.NoError(t, rdb.Set(t.Context(), key, big, 0).Err())
		require.Equal(t, big, rdb.Get(t.Context(), key).Val())
		require.ErrorIs(t, rdb.Get(t.Context(), key+"?").Err(), redis.Nil)
		require.ErrorContains(t, rdb.Incr(t.Context(), key).Err(), "not an integer")
		require.NoError(t, rdb.HSet(t.Context(), key+"h", "a", "1", "b", "\r\n").Err())
		require.Equal(t, map[string]string{"a": "1", "b": "\r\n"}, rdb.HGetAll(t.Context(), key+"h").Val())
		nested, err := rdb.Eval(t.Context(), "return {1, {'a', {}}, false}", nil).Result()
		require.NoError(t, err)
		require.Equal(t, []any{int64(1), []any{"a", []any{}}, nil}, nested)
		_, err = rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			p.Incr(t.Context(), key+"n")
			p.Incr(t.Context(), key+"n")
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, "2", rdb.Get(t.Context(), key+"n").Val())
	}
}

func TestPassesSubscriptions(t *testing.T) {
	t.Parallel()
	_, rdb := connect(t)
	channel := redistest.Name(t)
	sub := rdb.Subscribe(t.Context(), channel)
	defer func() { require.NoError(t, sub.Close()) }()
	_, err := sub.Receive(t.Context())
	require.NoError(t, err)
	require.NoError(t, rdb.Publish(t.Context(), channel, "hello").Err())
	m, err := sub.ReceiveMessage(t.Context())
	require.NoError(t, err)
	require.Equal(t, "hello", m.Payload)
}

func TestCommandWithLostReplyRuns(t *testing.T) {
	t.Parallel()
	p, rdb := connect(t, func(o *redis.Options) { o.MaxRetries = -1 })
	key := redistest.Name(t)
	p.SetRule(of("incr", faultproxy.Lose()))
	require.Error(t, rdb.Incr(t.Context(), key).Err())
	require.Equal(t, "1", rdb.Get(t.Context(), key).Val())
}

func TestDroppedCommandDoesNotRun(t *testing.T) {
	t.Parallel()
	p, rdb := connect(t, func(o *redis.Options) { o.MaxRetries = -1 })
	key := redistest.Name(t)
	p.SetRule(of("incr", faultproxy.Drop()))
	require.Error(t, rdb.Incr(t.Context(), key).Err())
	require.ErrorIs(t, rdb.Get(t.Context(), key).Err(), redis.Nil)
}

func TestCommandWithResetConnectionRuns(t *testing.T) {
	t.Parallel()
	p, rdb := connect(t, func(o *redis.Options) { o.MaxRetries = -1 })
	key := redistest.Name(t)
	p.SetRule(of("incr", faultproxy.Reset()))
	require.Error(t, rdb.Incr(t.Context(), key).Err())
	require.Equal(t, "1", rdb.Get(t.Context(), key).Val())
}

func TestRepeatedCommandRunsTwice(t *testing.T) {
	t.Parallel()
	p, rdb := connect(t)
	key := redistest.Name(t)
	repeated := make(chan struct{})
	p.SetRule(of("incr", faultproxy.Again(time.Millisecond, func() { close(repeated) })))
	require.EqualValues(t, 1, rdb.Incr(t.Context(), key).Val())
	<-repeated
	require.Equal(t, "2", rdb.Get(t.Context(), key).Val())
	p.SetRule(of("incr", faultproxy.Delay(time.Millisecond)))
	require.EqualValues(t, 3, rdb.Incr(t.Context(), key).Val())
}

// of returns a rule for one command.
func of(name string, fate faultproxy.Fate) faultproxy.Rule {
	return func(command []string) faultproxy.Fate {
		if command[0] == name {
			return fate
		}
		return faultproxy.Fate{}
	}
}

func TestHoldAndCut(t *testing.T) {
	t.Parallel()
	p, rdb := connect(t, func(o *redis.Options) { o.MaxRetries = -1 })
	key, until, held := redistest.Name(t), make(chan struct{}), make(chan struct{}, 1)
	p.SetRule(func(command []string) faultproxy.Fate {
		if command[0] == "incr" {
			held <- struct{}{}
			return faultproxy.Hold(until)
		}
		return faultproxy.Fate{}
	})
	answered := make(chan error, 1)
	go func() { answered <- rdb.Incr(t.Context(), key).Err() }()
	<-held
	require.Eventually(t, func() bool { return rdb.Get(t.Context(), key).Val() == "1" }, 30*time.Second, time.Millisecond)
	require.Empty(t, answered)
	close(until)
	require.NoError(t, <-answered)

	p.Cut()
	require.Error(t, rdb.Ping(t.Context()).Err())
	p.Mend()
	require.NoError(t, rdb.Ping(t.Context()).Err())
}

// A fate applies to a whole transaction.
func TestTransactions(t *testing.T) {
	t.Parallel()
	p, rdb := connect(t, func(o *redis.Options) { o.MaxRetries = -1 })
	direct, key := redistest.Shared(t), redistest.Name(t)
	var seen []string
	transact := func(fate faultproxy.Fate) error {
		p.SetRule(func(command []string) faultproxy.Fate {
			if !strings.EqualFold(command[0], "incr") {
				return faultproxy.Fate{}
			}
			seen = command
			return fate
		})
		_, err := rdb.TxPipelined(t.Context(), func(pipe redis.Pipeliner) error {
			pipe.Incr(t.Context(), key)
			pipe.Incr(t.Context(), key+"2")
			return nil
		})
		return err
	}
	require.NoError(t, transact(faultproxy.Fate{}))
	require.Equal(t, []string{"incr", key, "incr", key + "2"}, seen)
	require.Error(t, transact(faultproxy.Drop()))
	require.Equal(t, "1", direct.Get(t.Context(), key+"2").Val())
	require.Error(t, transact(faultproxy.Lose()))
	require.Equal(t, "2", direct.Get(t.Context(), key+"2").Val())
	done := make(chan struct{})
	require.NoError(t, transact(faultproxy.Again(time.Millisecond, func() { close(done) })))
	<-done
	require.Equal(t, "4", direct.Get(t.Context(), key+"2").Val())
}

func TestSilentLinkIsNeitherClosedNorAnswered(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB, string) *faultproxy.Proxy{"parsed": faultproxy.Start, "raw": faultproxy.StartRaw} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, redistest.SharedAddr(t))
			rdb := redistest.Shared(t, func(o *redis.Options) { o.Addr, o.ReadTimeout, o.MaxRetries = p.Addr, time.Minute, -1 })
			key := redistest.Name(t)
			require.NoError(t, rdb.Set(t.Context(), key, "before", 0).Err())
			p.Silence()
			answered := make(chan error, 1)
			go func() { answered <- rdb.Set(t.Context(), key, "after", 0).Err() }()
			select {
			case err := <-answered:
				require.Fail(t, "the command was answered or the connection closed", err)
			case <-time.After(200 * time.Millisecond):
			}
			p.Speak()
			require.NoError(t, <-answered)
			require.Equal(t, "after", rdb.Get(t.Context(), key).Val())
		})
	}
}
