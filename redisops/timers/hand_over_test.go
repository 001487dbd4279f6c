//go:build !race

package timers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// TestHandOverIsExchange checks that lua/hand_over.lua answers and writes what the
// whole exchange does in its place, or leaves the exchange to it.
func TestHandOverIsExchange(t *testing.T) {
	t.Parallel()
	// The timers a, b, c and d have the key "k", and a is running. A case changes what is
	// stored, or the request that acks a and claims one.
	for name, change := range map[string]func(t *testing.T, f *fixture, r *exchange.Request){
		"nothing else is there":   func(*testing.T, *fixture, *exchange.Request) {},
		"many are wanted":         func(_ *testing.T, _ *fixture, r *exchange.Request) { r.Want = 100 },
		"none is wanted":          func(_ *testing.T, _ *fixture, r *exchange.Request) { r.Want = 0 },
		"the maximum of claims":   func(_ *testing.T, f *fixture, _ *exchange.Request) { f.src.opts.MaxClaims = 1 },
		"failed ones are skipped": func(_ *testing.T, f *fixture, _ *exchange.Request) { f.src.opts.SkipFailed = true },
		"two may run":             func(_ *testing.T, _ *fixture, r *exchange.Request) { r.Flow.PerKey = 2 },
		"ten may run":             func(_ *testing.T, _ *fixture, r *exchange.Request) { r.Flow.PerKey = 10 },
		"no bound":                func(_ *testing.T, _ *fixture, r *exchange.Request) { r.Flow.PerKey = 0 },
		"a rate limit": func(_ *testing.T, _ *fixture, r *exchange.Request) {
			r.Flow.RateLimit, r.Flow.RatePer = 10, time.Second
		},
		"a nack":    func(_ *testing.T, _ *fixture, r *exchange.Request) { r.Settle[0].Verdict = exchange.Nack },
		"a release": func(_ *testing.T, _ *fixture, r *exchange.Request) { r.Settle[0].Verdict = exchange.Release },
		"an extension": func(_ *testing.T, _ *fixture, r *exchange.Request) {
			r.Settle, r.Extend = nil, []exchange.Held{r.Settle[0].Held}
		},
		"an unknown token": func(_ *testing.T, _ *fixture, r *exchange.Request) { r.Settle[0].Token = "1" },
		"an unknown timer": func(_ *testing.T, _ *fixture, r *exchange.Request) { r.Settle[0].ID = "unknown" },
		"two acks": func(_ *testing.T, _ *fixture, r *exchange.Request) {
			r.Settle = append(r.Settle, r.Settle[0])
		},
		"an ack and a release": func(_ *testing.T, _ *fixture, r *exchange.Request) {
			r.Settle = append(r.Settle, storetest.Verdict(exchange.Release, exchange.Lease{ID: "unknown", Token: "1"}))
		},
		"an expired lease": func(*testing.T, *fixture, *exchange.Request) { <-time.After(2 * time.Minute) },
		"another key": func(t *testing.T, f *fixture, _ *exchange.Request) {
			f.dueOf(t, "kk", "other")
			f.do(t, "del", f.key.Hint)
		},
		"a timer without a key": func(t *testing.T, f *fixture, _ *exchange.Request) { f.due(t, "other") },
		"a timer in 10 s": func(t *testing.T, f *fixture, _ *exchange.Request) {
			f.schedule(t, Entry{ID: "later", In: 10 * time.Second})
		},
		"a timer in an hour": func(t *testing.T, f *fixture, _ *exchange.Request) { f.schedule(t, Entry{ID: "later", In: time.Hour}) },
		"an earlier timer": func(t *testing.T, f *fixture, _ *exchange.Request) {
			f.schedule(t, Entry{ID: "e", Key: "k", At: time.Unix(1, 0)})
		},
		"b is gone": func(t *testing.T, f *fixture, _ *exchange.Request) { f.do(t, "zrem", f.key.Timeline, "b") },
		"b is in the future": func(t *testing.T, f *fixture, _ *exchange.Request) {
			f.do(t, "zadd", f.key.Timeline, "9999999999", "b")
		},
		"b is due": func(t *testing.T, f *fixture, _ *exchange.Request) { f.do(t, "zadd", f.key.Timeline, "1", "b") },
		"b has a record": func(t *testing.T, f *fixture, _ *exchange.Request) {
			f.do(t, "hset", f.key.Leases, "b", "w:3:2:17:253402300800:17:error")
		},
		"b has an unreadable record": func(t *testing.T, f *fixture, _ *exchange.Request) { f.do(t, "hset", f.key.Leases, "b", "x") },
		"b has no payload":           func(t *testing.T, f *fixture, _ *exchange.Request) { f.do(t, "hdel", f.key.Payloads, "b") },
		"b has an empty payload":     func(t *testing.T, f *fixture, _ *exchange.Request) { f.do(t, "hset", f.key.Payloads, "b", "") },
		"b has a large payload": func(t *testing.T, f *fixture, _ *exchange.Request) {
			f.do(t, "hset", f.key.Payloads, "b", strings.Repeat("b", fetchFrom))
		},
		"b has too large a payload": func(t *testing.T, f *fixture, _ *exchange.Request) {
			f.MaxPayload = 1000
			f.do(t, "hset", f.key.Payloads, "b", strings.Repeat("b", 1001))
		},
		"all others are gone": func(t *testing.T, f *fixture, _ *exchange.Request) { f.do(t, "del", f.key.KeyOrder) },
		"an unreadable order": func(t *testing.T, f *fixture, _ *exchange.Request) {
			f.do(t, "zadd", f.key.KeyOrder, "0", "001k"+strings.Repeat("!", placeBytes-1)+"b")
		},
		"a short order":            func(t *testing.T, f *fixture, _ *exchange.Request) { f.do(t, "zadd", f.key.KeyOrder, "0", "001k!") },
		"an order of another type": func(t *testing.T, f *fixture, _ *exchange.Request) { f.mistype(t, f.key.KeyOrder) },
		"the entry of a sole timer": func(t *testing.T, f *fixture, _ *exchange.Request) {
			f.do(t, "hset", f.key.TimerKeys, "a", strings.Repeat("1", placeBytes-1)+"sk")
		},
		"no entries":                   func(t *testing.T, f *fixture, _ *exchange.Request) { f.do(t, "del", f.key.TimerKeys) },
		"an unreadable entry":          func(t *testing.T, f *fixture, _ *exchange.Request) { f.do(t, "hset", f.key.TimerKeys, "a", "k") },
		"entries of another type":      func(t *testing.T, f *fixture, _ *exchange.Request) { f.mistype(t, f.key.TimerKeys) },
		"no states":                    func(t *testing.T, f *fixture, _ *exchange.Request) { f.do(t, "del", f.key.KeyStates) },
		"an unreadable state":          func(t *testing.T, f *fixture, _ *exchange.Request) { f.do(t, "hset", f.key.KeyStates, "k", "m9 a") },
		"another holder":               func(t *testing.T, f *fixture, _ *exchange.Request) { f.do(t, "hset", f.key.KeyStates, "k", "m1 c") },
		"two holders":                  func(t *testing.T, f *fixture, _ *exchange.Request) { f.do(t, "hset", f.key.KeyStates, "k", "m1 a1 c") },
		"states of another type":       func(t *testing.T, f *fixture, _ *exchange.Request) { f.mistype(t, f.key.KeyStates) },
		"no leases":                    func(t *testing.T, f *fixture, _ *exchange.Request) { f.do(t, "del", f.key.Leases) },
		"dead letters of another type": func(t *testing.T, f *fixture, _ *exchange.Request) { f.mistype(t, f.key.Dead) },
		"leases of another type":       func(t *testing.T, f *fixture, _ *exchange.Request) { f.mistype(t, f.key.Leases) },
		"payloads of another type":     func(t *testing.T, f *fixture, _ *exchange.Request) { f.mistype(t, f.key.Payloads) },
		"a timeline of another type":   func(t *testing.T, f *fixture, _ *exchange.Request) { f.mistype(t, f.key.Timeline) },
		"a hint":                       func(t *testing.T, f *fixture, _ *exchange.Request) { f.do(t, "set", f.key.Hint, "1") },
		"a hint of another type":       func(t *testing.T, f *fixture, _ *exchange.Request) { f.mistype(t, f.key.Hint) },
		"other settings": func(t *testing.T, f *fixture, r *exchange.Request) {
			r.Control = noMark
			f.do(t, "hset", f.key.Control, "paused", "1")
		},
		"the same settings": func(_ *testing.T, _ *fixture, r *exchange.Request) { r.Control = noMark },
		"settings of another type": func(t *testing.T, f *fixture, r *exchange.Request) {
			r.Control = noMark
			f.mistype(t, f.key.Control)
		},
		"an answered sequence": func(_ *testing.T, _ *fixture, r *exchange.Request) { r.Sequence-- },
		"a past sequence":      func(_ *testing.T, _ *fixture, r *exchange.Request) { r.Sequence = 1 },
		"an unreadable answer": func(t *testing.T, f *fixture, r *exchange.Request) {
			f.do(t, "set", f.key.Stream(r.Incarnation, r.Stream), "x")
		},
		"an answer of another type": func(t *testing.T, f *fixture, r *exchange.Request) {
			f.mistype(t, f.key.Stream(r.Incarnation, r.Stream))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen [2][]string
			for i, whole := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) { seen[i] = handOver(t, whole, change) })
			}
			require.Equal(t, seen[0], seen[1])
		})
	}
}

// TestHandOverTakesFewCommands checks that it does not need the whole exchange, where it
// must not.
func TestHandOverTakesFewCommands(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Start(t).Client(t))
	f.dueOf(t, "k", "a", "b", "c", "d")
	leases := f.perKey(t, 1, 10).Leases
	for _, id := range []string{"b", "c", "d"} {
		require.NoError(t, f.rdb.ConfigResetStat(t.Context()).Err())
		if token := &leases[0].Token; strings.Contains(string(*token), ".") {
			*token += "0" // since Redis 7.2, and in Valkey, a score has fewer digits than the script writes
		}
		leases = f.perKey(t, 1, 10, ack(leases[0])).Leases
		require.Equal(t, []string{id}, storetest.IDs(leases))
		total := 0
		for name, n := range f.calls(t) {
			if !ofConnections(name) {
				total += n
			}
		}
		require.LessOrEqual(t, total, 23, "22 commands and the script")
	}
}

// ofConnections reports whether a command is none of a call, but sets up a connection, or
// counts commands. Which of them a server counts depends on its version, and how often they
// come on the connections that the client opens meanwhile.
func ofConnections(command string) bool {
	family, _, _ := strings.Cut(command, "|")
	return slices.Contains([]string{"auth", "client", "command", "config", "hello", "info", "ping", "select"}, family)
}

// handOver claims the first of four timers of a key, which parks the others, acks it and
// claims another with a request that change has changed, sends that request again, and
// goes on to the last. It returns the answers, and what was stored after each. If whole is
// true, the exchanges do without lua/hand_over.lua.
func handOver(t *testing.T, whole bool, change func(*testing.T, *fixture, *exchange.Request)) (seen []string) {
	t.Helper()
	rdb, data := redistest.Embedded(t)
	if whole {
		require.NoError(t, wholeExchange.Load(t.Context(), rdb).Err())
		rdb.AddHook(inPlace{wholeExchange})
	}
	f := newFixture(t, rdb).on("topic")
	f.Incarnation = "poller"
	f.dueOf(t, "k", "a", "b", "c", "d")
	leases := f.perKey(t, 1, 10).Leases
	require.Equal(t, []string{"a"}, storetest.IDs(leases))
	<-time.After(time.Second)

	run := func(r *exchange.Request) bool {
		reply, err := f.src.Exchange(t.Context(), r)
		if err == nil {
			leases = reply.Leases
		}
		seen = append(seen, fmt.Sprintf("%+v %v\n%s", reply, err, data.Dump()))
		return err == nil
	}
	r := f.Request(1, time.Minute)
	r.Flow.PerKey, r.Settle = 1, []exchange.Settlement{ack(leases[0])}
	change(t, f, r)
	run(r)
	for run(r) && len(leases) > 0 {
		r = f.Request(1, time.Minute)
		r.Flow.PerKey = 1
		for _, l := range leases {
			r.Settle = append(r.Settle, ack(l))
		}
	}
	return seen
}

// wholeExchange is the exchange of timers with keys without lua/hand_over.lua.
var wholeExchange = lua.Composed("exchange", slices.DeleteFunc(lua.PartsOf("exchange", "keys"), func(part string) bool {
	return part == "hand_over"
}))

// inPlace is a client hook that runs a script in place of the exchange of timers with keys.
type inPlace struct{ script *redis.Script }

func (inPlace) DialHook(next redis.DialHook) redis.DialHook { return next }

func (inPlace) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (p inPlace) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); args[0] == "evalsha" && args[1] == exchangeKeysScript.Hash() {
			args[1] = p.script.Hash()
		}
		return next(ctx, cmd)
	}
}
