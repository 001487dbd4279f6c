package timers

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
)

// noIntegers are what another program may have written where a whole number is
// stored.
var noIntegers = []string{"x", "nan", "inf", "-inf", "-5", "1.5", "0x10", " 5", "007", "1e300", "99999999999999999999"}

// A gate whose state has an unreadable number keeps its holder and its order, and
// its tickets only grow.
func TestUnreadableNumbersStopNoGate(t *testing.T) {
	t.Parallel()
	for _, field := range []string{"last", "granted", "holder", "until", "lease", "since"} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			onEachGate(t, func(t *testing.T, f *gateFixture) {
				for i, text := range noIntegers {
					a := f.other()
					a.gate = fmt.Sprint(f.gate, i)
					b := a.other()
					first, turn := a.join(t)
					require.True(t, turn)
					second, _ := b.join(t)
					state := a.keys.state(a.gate)
					require.NoError(t, f.rdb.HSet(t.Context(), state, field, text).Err())
					if field != "holder" { // then the turn has no name until the state is healed
						require.NoError(t, a.guards(t, "db", first), "%q", text)
						require.Equal(t, []bool{false}, a.beat(t, first).Lost, "%q", text)
						require.NoError(t, f.rdb.HSet(t.Context(), state, field, text).Err())
					}
					_, err := a.Repair(t.Context(), a.gate, 0, a.terms)
					require.NoError(t, err, "%q", text)
					require.NoError(t, f.rdb.HSet(t.Context(), state, field, text).Err())
					require.Zero(t, b.held(t), "%q", text)
					require.Equal(t, first, a.held(t), "%q", text)
					require.Equal(t, []bool{false}, a.beat(t, first).Lost, "%q", text)
					third, _ := a.join(t)
					require.Greater(t, third, second, "%q", text)
					require.LessOrEqual(t, int64(third), time.Now().Add(time.Hour).UnixMicro(), "%q", text) //nolint:gosec // below 2^53
					require.True(t, a.give(t, first))
					require.Equal(t, second, b.held(t), "%q", text)
					require.NoError(t, b.guards(t, "db", second), "%q", text)
				}
			})
		})
	}
}

// What of the keys that all gates share cannot be read counts as not there.
func TestUnreadableSharedNumbersOfGates(t *testing.T) {
	t.Parallel()
	embedded, _ := redistest.Embedded(t)
	for _, rdb := range []*redis.Client{redistest.Start(t).Client(t), embedded} {
		base := newGateFixture(t, rdb)
		for i, text := range noIntegers {
			f := base.other()
			f.gate = fmt.Sprint(base.gate, i)
			require.NoError(t, rdb.Set(t.Context(), f.keys.Mark, text, 0).Err())
			score := []float64{math.Inf(1), math.Inf(-1), 1e300, -5, 1.5}[i%5]
			for _, member := range []string{"last", "grace", f.process} {
				require.NoError(t, rdb.ZAdd(t.Context(), f.keys.Presence, redis.Z{Score: score, Member: member}).Err())
			}
			first, turn := f.join(t)
			require.True(t, turn, "%q", text)
			require.Equal(t, []bool{false}, f.beat(t, first).Lost, "%q", text)
			b := f.other()
			second, _ := b.join(t)
			require.True(t, f.give(t, first))
			require.Equal(t, second, b.held(t), "%q", text)
		}
	}
}

// An unreadable token of one resource, or of a gate that was removed, refuses no
// turn, and a repair clears it.
func TestUnreadableTokensOfAGuard(t *testing.T) {
	t.Parallel()
	onEachGate(t, func(t *testing.T, f *gateFixture) {
		for i, text := range noIntegers {
			g := f.other()
			g.gate = fmt.Sprint(f.gate, i)
			held, _ := g.join(t)
			guard := g.keys.guard(g.gate)
			require.NoError(t, f.rdb.HSet(t.Context(), guard, "db", text, "other", text, removedField, text).Err())
			require.NoError(t, g.guards(t, "db", held), "%q", text)
			require.True(t, g.give(t, held))
			require.NoError(t, g.guards(t, "third", held), "%q", text)
			repaired, err := g.Repair(t.Context(), g.gate, 0, g.terms)
			require.NoError(t, err, "%q", text)
			require.Equal(t, 2, repaired.Cleared, "%q", text)
			require.Positive(t, g.use(t), "%q", text)
		}
	})
}

// An entry of a gate's stream that no gate has written is passed over.
func TestForeignEntriesOfAGate(t *testing.T) {
	t.Parallel()
	onEachGate(t, func(t *testing.T, f *gateFixture) {
		for i, id := range []string{"5-3", "0-1", "17-1"} {
			g := f.other()
			g.gate = fmt.Sprint(f.gate, i)
			owner := g.process + "#1"
			add := &redis.XAddArgs{Stream: g.keys.stream(g.gate), ID: id, Values: []string{"owner", owner}}
			require.NoError(t, f.rdb.XAdd(t.Context(), add).Err())
			ticket, turn := g.join(t)
			require.True(t, turn, id)
			require.Positive(t, ticket)
		}
	})
}

// The answer that is kept of an exchange counts as none when it cannot be read.
func TestUnreadableAnswersOfExchanges(t *testing.T) {
	t.Parallel()
	for _, text := range append(noIntegers, "", "1", "1\n", "1 x", "1\n1 0 0 0 9\n", "1\n1 0 0 0 2\nxyz", "1 1 0 0 0 0\nxyz") {
		t.Run(fmt.Sprintf("%q", text), func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, f *fixture) {
				f.due(t, "a")
				r := f.request(1, time.Minute)
				k := f.key
				require.NoError(t, f.rdb.Set(t.Context(), k.stream(r.Incarnation, r.Stream), kept(text, r.Sequence), 0).Err())
				require.Equal(t, []string{"a"}, ids(f.run(t, r).Leases))
			})
			onEachQueue(t, func(t *testing.T, f *queueFixture) {
				f.put(t, "a")
				r := f.request(1, time.Minute)
				stream := f.keys.stream(r.Incarnation, r.Stream)
				require.NoError(t, f.rdb.Set(t.Context(), stream, kept(text, r.Sequence), 0).Err())
				require.Equal(t, []string{"a"}, payloads(f.run(t, r).Leases))
			})
		})
	}
}

// kept gives an answer the sequence number in place of its first digit.
func kept(text string, sequence uint64) string {
	if rest, ok := strings.CutPrefix(text, "1"); ok && (rest == "" || rest[0] == '\n' || rest[0] == ' ') {
		return fmt.Sprint(sequence) + rest
	}
	return text
}

// A count of deliveries that cannot be read counts as none: the message and those
// beside it are delivered, and each of its settlements works.
func TestUnreadableCountsOfDeliveries(t *testing.T) {
	t.Parallel()
	onEachQueue(t, func(t *testing.T, f *queueFixture) {
		f = f.holder(QueueOptions{MaxDeliveries: 3})
		for _, text := range append(noIntegers, "") {
			for _, v := range []exchange.Verdict{exchange.Ack, exchange.Nack, exchange.Bury, exchange.Fail, exchange.Release} {
				f.put(t, "odd", "good")
				unreadable := func() {
					for _, list := range []string{f.keys.pending, f.keys.processing} {
						for _, stored := range f.list(t, list) {
							if strings.Contains(stored, "odd") {
								require.NoError(t, f.rdb.HSet(t.Context(), f.keys.counts, stored, text).Err())
							}
						}
					}
				}
				unreadable()
				leases := f.claim(t, 2).Leases
				require.Equal(t, []string{"odd", "good"}, payloads(leases), "%q", text)
				require.Equal(t, 1, leases[0].Claims, "%q", text)
				unreadable()
				reply := f.settle(t, verdict(v, leases[0]), verdict(exchange.Ack, leases[1]))
				require.Empty(t, reply.Refused, "%q", text)
				f.pass(t, time.Now())
				for _, l := range f.claim(t, 2).Leases { // a nack and a release
					require.Equal(t, "odd", string(l.Payload))
					f.settle(t, verdict(exchange.Ack, l))
				}
			}
		}
	})
}

// A counter of tokens that Redis or Lua cannot count on goes on from the clock.
func TestUnreadableCounterOfTokens(t *testing.T) {
	t.Parallel()
	onEachQueue(t, func(t *testing.T, f *queueFixture) {
		seen := map[string]bool{}
		for _, text := range append(noIntegers, "", "9223372036854775807", "9007199254740991") {
			f.put(t, "a", "b")
			require.NoError(t, f.rdb.Set(t.Context(), f.keys.counter, text, 0).Err())
			leases := f.claim(t, 2).Leases
			require.Len(t, leases, 2, "%q", text)
			for _, l := range leases {
				token, _, _ := strings.Cut(string(l.Token), " ")
				require.False(t, seen[token], "%q: %s was given before", text, token)
				seen[token] = true
				require.Empty(t, f.settle(t, verdict(exchange.Ack, l)).Refused)
			}
		}
	})
}

// A place of a dead letter that no queue has written does not stop those after it.
func TestUnreadablePlacesOfDeadLetters(t *testing.T) {
	t.Parallel()
	onEachQueue(t, func(t *testing.T, f *queueFixture) {
		for i, text := range noIntegers {
			f.put(t, fmt.Sprint("message", i))
			l := f.claim(t, 1).Leases[0]
			require.NoError(t, f.rdb.ZAdd(t.Context(), f.keys.places, redis.Z{Score: 9e15, Member: text}).Err())
			require.Len(t, f.settle(t, verdict(exchange.Bury, l)).Buried, 1, "%q", text)
			require.Len(t, f.list(t, f.keys.dlq), i+1)
		}
	})
}

// A last run that cannot be read counts as none, and holds back no run.
func TestUnreadableLastRun(t *testing.T) {
	t.Parallel()
	onEachBeat(t, func(t *testing.T, f *beatFixture) {
		runs := f.timers.keys.of(f.topic).runs
		for i, text := range noIntegers {
			require.NoError(t, f.rdb.HSet(t.Context(), runs, "a", "inc "+text).Err())
			put := recur.Put{Run: int64(i + 1), ID: fmt.Sprint(i), Topic: f.topic, Payload: []byte("x"), At: time.Unix(4e9, 0)}
			require.NoError(t, f.Send(t.Context(), "a", "inc", put))
			require.Len(t, f.ids(), i+1, "%q", text)
			require.NoError(t, f.Send(t.Context(), "a", "inc", put))
		}
	})
}

// A lock whose holder has written anything, and members of the schedule with any
// score, stop neither the look nor the firing.
func TestOddLocksAndScoresOfABeat(t *testing.T) {
	t.Parallel()
	onEachBeat(t, func(t *testing.T, f *beatFixture) {
		for i, score := range []float64{math.Inf(1), math.Inf(-1), 1e300, -5, 1.5} {
			name := fmt.Sprint("odd", i)
			f.put(name, recur.Raw{}, raw("1"))
			require.NoError(t, f.rdb.ZAdd(t.Context(), f.schedule(), redis.Z{Score: score, Member: f.entry(name)}).Err())
		}
		for i, text := range noIntegers {
			name := fmt.Sprint("a", i)
			f.put(name, recur.Raw{}, raw("1"))
			require.NoError(t, f.rdb.Set(t.Context(), f.lock(), text, 0).Err())
			looked, err := f.Look(t.Context(), "", time.Hour, 0, 0, 100)
			require.NoError(t, err)
			reply := f.fire("ours", looked.Lock, f.firing(name, "1", name))
			require.Equal(t, []Fate{Fired}, reply.Fates, "%q", text)
		}
	})
}
