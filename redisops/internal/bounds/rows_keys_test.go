//go:build !race

package bounds

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/redisops/timers"
)

// settledByKey is how many settlements package leasing puts into an exchange of a topic with
// limits by key.
const settledByKey = 150

// keyFlows are the largest limits of keys.
var keyFlows = []struct {
	name string
	flow exchange.Flow
	run  int // of a key
}{
	{"PerKey(1)", exchange.Flow{PerKey: 1}, 0},
	{"PerKey(1), KeyRun(100)", exchange.Flow{PerKey: 1}, claims},
	{"PerKey(10,000)", exchange.Flow{PerKey: 10_000}, 0},
	{"RateLimitByKey(1,000,000/s)", exchange.Flow{KeyRateLimit: 1_000_000, KeyRatePer: time.Second}, 0},
	{"RateLimitByKey(1 in 30 days, burst 1,000,000)", exchange.Flow{KeyRateLimit: 1, KeyRatePer: 30 * 24 * time.Hour, KeyRateBurst: 1_000_000}, 0},
	{"RateLimitByKey(1,000,000/s, burst 1)", exchange.Flow{KeyRateLimit: 1_000_000, KeyRatePer: time.Second, KeyRateBurst: 1}, 0},
	{"all limits at their largest", exchange.Flow{
		PerKey: 10_000, KeyRateLimit: 1_000_000, KeyRatePer: time.Second, KeyRateBurst: 1_000_000,
		RateLimit: 1_000_000, RatePer: time.Second, RateBurst: 1_000_000, MaxInFlight: 1_000_000,
	}, 0},
	{"PerKey(10,000), FairKeys(1)", exchange.Flow{PerKey: 10_000, FairKeys: 1}, 0},
	{"all limits at their largest, FairKeys(100)", exchange.Flow{
		PerKey: 10_000, KeyRateLimit: 1_000_000, KeyRatePer: time.Second, KeyRateBurst: 1_000_000, FairKeys: 100,
		RateLimit: 1_000_000, RatePer: time.Second, RateBurst: 1_000_000, MaxInFlight: 1_000_000,
	}, 0},
	{"PerKey(10,000), RateLimit and MaxInFlight", exchange.Flow{
		PerKey: 10_000, RateLimit: 1_000_000, RatePer: time.Second, RateBurst: 1_000_000, MaxInFlight: 1_000_000,
	}, 0},
}

// keysRows handles a backlog of one key, of which 10,000 run, and of many keys.
func keysRows(b *bench) {
	n := min(b.many/8, 25_000)
	for i, f := range keyFlows {
		b.backlog(fmt.Sprint("one-", i), f.name+", one key", f.flow, f.run, n, 1)
		b.backlog(fmt.Sprint("many-", i), f.name+", 500 keys", f.flow, f.run, n, 500)
	}
	b.staleOrder()
}

// keyed schedules timers that are due, of some keys.
func (b *bench) keyed(topic string, n, keys int, at time.Time) {
	b.Helper()
	all := make([]timers.Entry, n)
	for i, id := range ids("timer", 0, n) {
		all[i] = timers.Entry{ID: id, Payload: text(100), At: at, Key: fmt.Sprint("key ", i%keys)}
	}
	inParts(all, batch, func(part []timers.Entry) {
		_, err := b.unmeasured().Schedule(b.Context(), topic, part...)
		b.must(err)
	})
}

func (b *bench) unmeasured() *timers.Timers { return b.timers(b.other) }

func (b *bench) backlog(topic, name string, flow exchange.Flow, run, n, keys int) {
	ctx, s := b.Context(), b.within()
	b.keyed(topic, n, keys, time.Unix(1000, 0))
	src := s.Source(topic, timers.SourceOptions{KeyWeights: strings.Repeat("another=100,", 100)})
	stream := storetest.NewStream(src)
	exchangeOf := func(r *exchange.Request) []exchange.Lease {
		r.Want, r.Flow, r.KeyRun = claims, flow, run
		return stream.Run(b, r).Leases
	}
	var held []exchange.Lease
	// Until 10,000 run, or the rest is parked. The last claims find little to do, and in one
	// median they would hide what the first ones take.
	for i := range n/claims + 5 {
		what := "claim, "
		if i > n/claims/2 {
			what = "claim again, "
		}
		b.once(what+name, func() { held = append(held, exchangeOf(stream.Request(claims, time.Hour))...) })
	}
	all := []exchange.Verdict{exchange.Ack, exchange.Nack, exchange.Release, exchange.DeadLetter}
	for _, v := range slices.Repeat(all, b.rounds()) { // in turn, for a median of each
		most := settledByKey
		if v == exchange.DeadLetter {
			most = rejects
		}
		some := held[:min(most, len(held))]
		held = held[len(some):]
		b.once(fmt.Sprintf("settle %d (%s) and claim, %s", most, verdicts[v], name), func() { held = append(held, exchangeOf(settling(stream, v, some))...) })
	}
	b.measured("sweep, "+name, func(int) { b.must(src.SweepKeys(ctx, flow)) })
	b.measured("cancel 500 that run, "+name, func(int) {
		var ids []string
		for n := min(batch, len(held)); n > 0; n-- {
			ids, held = append(ids, held[0].ID), held[1:]
		}
		if len(ids) > 0 {
			_, err := s.Cancel(ctx, topic, ids...)
			b.must(err)
		}
	})
	b.measured("schedule 500 again that wait, "+name, func(round int) {
		var all []timers.Entry
		for i, id := range ids("timer", n-batch, batch) {
			all = append(all, timers.Entry{ID: id, Payload: text(100), In: time.Hour * time.Duration(round%2), Key: fmt.Sprint("key ", (n-batch+i)%keys)})
		}
		_, err := s.Schedule(ctx, topic, all...)
		b.must(err)
	})
	b.measured("move one of a key, "+name, func(round int) {
		id := ids("timer", n-batch+round, 1)[0]
		_, err := s.Reschedule(ctx, topic, id, time.Time{}, time.Hour)
		b.must(err)
		_, err = s.RunNow(ctx, topic, id)
		b.must(err)
	})
	b.measured("stats, "+name, func(int) { _, err := s.Stats(ctx, topic); b.must(err) })
	b.measured("the first sweeps without a limit, "+name, func(int) { b.must(src.SweepKeys(ctx, exchange.Flow{})) })
}

// staleOrder sweeps the keys of timers that nodes without limits have handled.
func (b *bench) staleOrder() {
	b.keyed("stale", 10_000, 1, time.Unix(1000, 0))
	src := b.store.Source("stale", timers.SourceOptions{})
	stream := storetest.NewStream(b.unmeasured().Source("stale", timers.SourceOptions{}))
	for range 20 {
		stream.Run(b, settling(stream, exchange.Ack, stream.Claim(b, claims).Leases))
	}
	b.keyed("stale", 500, 1, time.Unix(1000, 0))
	b.measured("sweep after handlers without limits", func(int) {
		b.must(src.SweepKeys(b.Context(), exchange.Flow{PerKey: 1}))
	})
	limited := storetest.NewStream(src)
	b.measured("claim after handlers without limits", func(int) {
		r := limited.Request(claims, time.Minute)
		r.Flow = exchange.Flow{PerKey: 1}
		limited.Run(b, r)
	})
	b.measured("collect orphans of keys", func(int) {
		_, err := src.RemoveOrphans(b.Context())
		b.must(err)
	})
}

// limitsRows handles timers on a topic with limits, but no keys.
func limitsRows(b *bench) {
	flow := exchange.Flow{RateLimit: 1_000_000, RatePer: time.Second, RateBurst: 1_000_000, MaxInFlight: 1_000_000}
	for name, s := range map[string]*timers.Timers{"": b.store, ", payloads within the script": b.within()} {
		topic := "limits" + name
		b.load(topic, b.tens)
		stream := storetest.NewStream(s.Source(topic, timers.SourceOptions{MaxBytes: 1 << 20}))
		b.measured("claim and settle with RateLimit and MaxInFlight"+name, func(round int) {
			_, err := b.unmeasured().Schedule(b.Context(), topic, entries("due", round, claims, fullSize, timers.Entry{At: time.Unix(1000, 0)})...)
			b.must(err)
			r := stream.Request(claims, time.Minute)
			r.Flow = flow
			again := settling(stream, exchange.Ack, stream.Run(b, r).Leases)
			again.Flow = flow
			stream.Run(b, again)
		})
	}
}
