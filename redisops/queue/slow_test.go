//go:build !race

package queue

import (
	"bytes"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/queuemessage"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// measureSlow is set by make script-bounds. Without it the same calls are made at a fiftieth of
// the sizes and no time is judged: there, redisops/internal/bounds counts commands instead.
var measureSlow = flag.Bool("slow.measure", false, "measure for how long commands of queues block Redis, at the sizes of docs/scale.md")

// many is the number of messages of a full queue.
func many() int {
	if *measureSlow {
		return 1_000_000
	}
	return 20_000
}

// bounded returns what makes calls, and bounds the time of their commands if it is to be measured.
func bounded(t *testing.T, server *redistest.Server, rdb *redis.Client) func(name string, op func()) {
	t.Helper()
	if *measureSlow {
		return server.Meter(t, rdb).Bounded
	}
	return func(_ string, op func()) { op() }
}

// place writes a place and a record for each seeded dead letter, as if a node had
// written them.
func (f *fixture) place(t testing.TB, n int) {
	t.Helper()
	script := redis.NewScript(scripts.Prelude() + lua.Source("shared") + lua.Source("dead") + `
local prints = {}
for i = 0, 9 do prints[i] = fingerprint('letter ' .. i) .. ' 1 1 1\nx' end
for from = tonumber(ARGV[1]), tonumber(ARGV[1]) + 9999, 100 do
  local places, records = {}, {}
  for i = from, from + 99 do
    places[#places + 1], places[#places + 2] = whole(i + 1), whole(i + 1)
    records[#records + 1], records[#records + 2] = whole(i + 1), prints[i % 10] .. i
  end
  redis.call('ZADD', KEYS[2], unpack(places))
  redis.call('HSET', KEYS[3], unpack(records))
end
close(KEYS[1], KEYS[2], KEYS[3], 0)`)
	for from := 0; from < n; from += 10_000 {
		require.ErrorIs(t, script.Run(t.Context(), f.rdb, f.keys.deadKeys(), from).Err(), redis.Nil)
	}
}

// page reads dead letters after a number of others.
func (f *fixture) page(t testing.TB, from, n int) []wakebelltype.QueueDeadLetter {
	t.Helper()
	var all []wakebelltype.QueueDeadLetter
	for next := fmt.Sprint(from); len(all) < n; {
		dead, after, err := f.DeadLetters(t.Context(), "", next, min(n-len(all), 1000))
		require.NoError(t, err)
		all, next = append(all, dead...), after
	}
	return all
}

func TestQueueScriptsAreBoundedInFullQueues(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f, n := queueOn(t, server.Client(t), "q"), many()
	f.seed(t, "pending", n)
	f.seed(t, "processing", n/4)
	bounded := bounded(t, server, f.rdb.(*redis.Client))
	var leases []exchange.Lease
	claim := func(want int) { leases = f.Claim(t, want).Leases }
	settle := func(v exchange.Verdict) {
		r := f.Request(0, time.Minute)
		for _, l := range leases {
			r.Settle = append(r.Settle, storetest.Verdict(v, l))
		}
		f.Run(t, r)
	}
	bounded("claim what has expired", func() { claim(500) })
	bounded("extend", func() { f.Extend(t, time.Minute, leases...) })
	for _, v := range verdicts {
		bounded(fmt.Sprint("settle ", v), func() {
			claim(500)
			settle(v)
		})
	}
	poison := f.holder(SourceOptions{MaxDeliveries: 1, DeadCap: 1000})
	bounded("give up", func() { poison.Claim(t, 1) })
	batch := make([]Message, layout.BatchEntries)
	for i := range batch {
		batch[i].Payload, batch[i].Key = []byte("new"), fmt.Sprint(i)
	}
	bounded("publish", func() {
		for i := range batch {
			batch[i].tail = ""
		}
		f.publish(t, PublishOptions{Window: time.Millisecond}, batch...)
	})
	bounded("publish and drop", func() {
		for i := range batch {
			batch[i].tail = ""
		}
		f.publish(t, PublishOptions{Window: time.Millisecond, Cap: 1000, DropOldest: true}, batch...)
	})
	bounded("stats", func() {
		_, err := f.Stats(t.Context())
		require.NoError(t, err)
	})
	for _, running := range []bool{true, false} {
		bounded("list", func() {
			_, err := f.Messages(t.Context(), running, int64(n/8), 1000)
			require.NoError(t, err)
		})
	}
	once := f.holder(SourceOptions{AtMostOnce: true})
	bounded("settle what is delivered at most once", func() {
		reply := once.Claim(t, 100)
		r := once.Request(0, time.Minute)
		for _, l := range reply.Leases {
			r.Settle = append(r.Settle, storetest.Verdict(exchange.Ack, l))
		}
		require.Empty(t, once.Run(t, r).Refused)
	})
	purge := func(what string) {
		k := f.keys
		require.NoError(t, purgeScript.Run(t.Context(), f.rdb,
			[]string{k.pending, k.processing, k.deadlines, k.tokens, k.counts, k.refs, k.ids, k.backrefs, k.gone, k.hint, k.freed, k.flow},
			what, k.owners).Err())
	}
	bounded("purge pending", func() { purge("pending") })
	bounded("purge processing", func() { purge("processing") })
}

func TestDeadLettersAreBoundedInFullQueues(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb := server.Client(t)
	measured := bounded(t, server, rdb)
	f, n := queueOn(t, rdb, "q"), many()
	f.seed(t, "dead", n)
	f.place(t, n)
	for _, recorded := range []bool{true, false} {
		if !recorded {
			require.NoError(t, rdb.Unlink(t.Context(), f.keys.places, f.keys.records).Err())
		}
		bounded := func(name string, op func()) { measured(fmt.Sprint(name, " ", recorded), op) }
		for _, at := range []int{0, 1000, n / 4, n / 2, n - 2000} {
			bounded(fmt.Sprint("page ", at), func() {
				_, _, err := f.DeadLetters(t.Context(), "", fmt.Sprint(at), 1000)
				require.NoError(t, err)
			})
			bounded(fmt.Sprint("show ", at), func() {
				l := f.page(t, at, 1)[0]
				found, err := f.DeadLetter(t.Context(), l.Entry)
				require.NoError(t, err)
				require.Equal(t, l, found)
			})
			bounded(fmt.Sprint("redrive ", at), func() {
				outcome, _, err := f.RedriveLetter(t.Context(), f.page(t, at, 1)[0], "", PublishOptions{})
				require.NoError(t, err)
				require.Equal(t, wakebelltype.QueueRedriveSucceeded, outcome)
			})
			bounded(fmt.Sprint("delete ", at), func() {
				n, err := f.DiscardLetters(t.Context(), f.page(t, at, 10)...)
				require.NoError(t, err)
				require.Equal(t, 10, n)
			})
		}
		bounded("delete the newest", func() {
			st, err := f.Stats(t.Context())
			require.NoError(t, err)
			n, err := f.DiscardLetters(t.Context(), f.page(t, int(st.Dead)-500, 500)...)
			require.NoError(t, err)
			require.Equal(t, 500, n)
		})
		capped := f.holder(SourceOptions{DeadCap: 1000})
		bounded("reject", func() {
			f.put(t, slices.Repeat([]string{"again"}, 500)...)
			var settle []exchange.Settlement
			for _, l := range capped.Claim(t, 500).Leases {
				settle = append(settle, storetest.Verdict(exchange.DeadLetter, l))
			}
			capped.Settle(t, settle...)
		})
	}
	measured("heal", func() {
		_, err := f.src.RemoveOrphans(t.Context())
		require.NoError(t, err)
	})
}

// TestQueueKeepsAnyPayloadAsSoonAsText checks payloads that are not UTF-8, which once took 1.8 s
// to decode byte by byte, beside texts that are as long as they are stored.
func TestQueueKeepsAnyPayloadAsSoonAsText(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := queueOn(t, server.Client(t), "q").holder(SourceOptions{Completed: 1000})
	meter := server.Meter(t, f.rdb.(*redis.Client))
	slowest := func(payload []byte) time.Duration {
		took, _ := meter.Slowest(func() {
			for range 20 {
				f.publish(t, PublishOptions{}, NewMessage(payload, ""))
			}
			var settle []exchange.Settlement
			for len(settle) < 20 {
				for _, l := range f.Claim(t, 20).Leases {
					settle = append(settle, storetest.Verdict(exchange.Ack, l))
				}
			}
			require.Empty(t, f.Settle(t, settle...).Refused)
		})
		require.Equal(t, string(payload), f.rdb.LIndex(t.Context(), f.keys.completed, 0).Val())
		return took
	}
	binary := bytes.Repeat([]byte{0xff, 0}, 50<<10)
	text := bytes.Repeat([]byte("x"), len(queuemessage.Rest(binary, nil)))
	var tries []string
	for range 5 { // other processes can make a command slow by chance
		odd, plain := slowest(binary), slowest(text)
		if odd <= 2*plain {
			return
		}
		tries = append(tries, fmt.Sprintf("%v, and %v for texts", odd, plain))
	}
	t.Error(tries)
}
