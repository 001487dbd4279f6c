//go:build !race

package bounds

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/doctor"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// loadScript writes timers within Redis: from, to, the instant of the first.
var loadScript = redis.NewScript(`
local body = string.rep('x', 200)
for i = tonumber(ARGV[1]), tonumber(ARGV[2]) - 1, 100 do
  local scored, bodies = {}, {}
  for j = i, i + 99 do
    local id = string.format('timer-%010d', j)
    scored[#scored + 1], scored[#scored + 2] = tonumber(ARGV[3]) + j, id
    bodies[#bodies + 1], bodies[#bodies + 2] = id, body
  end
  redis.call('ZADD', KEYS[1], unpack(scored))
  redis.call('HSET', KEYS[2], unpack(bodies))
end
return 0`)

// load fills a topic with timers, which are due from an hour on.
func (b *bench) load(topic string, n int) {
	b.Helper()
	const step = 10_000
	k := b.store.Keys().Of(topic)
	first := time.Now().Add(time.Hour).Unix()
	for from := 0; from < n; from += step {
		b.must(loadScript.Run(b.Context(), b.other, []string{k.Timeline, k.Payloads}, from, min(from+step, n), first).Err())
	}
}

// entries returns entries of a batch, with as much payload as a batch may have.
func entries(prefix string, round, n, size int, with timers.Entry) []timers.Entry {
	all := make([]timers.Entry, n)
	for i, id := range ids(fmt.Sprint(prefix, "-", round), 0, n) {
		all[i] = with
		all[i].ID, all[i].Payload = id, text(size)
	}
	return all
}

// Sizes of batches: many small payloads, as many as a batch has, and one that is as large
// as a payload may be.
const (
	batch    = layout.BatchEntries
	fullSize = layout.BatchBytes / batch
	keyed    = layout.CostlyEntries
	claims   = 500 // that an exchange asks for; the store gives it as many as it may
	// rejects is how many timers package leasing dead-letters in an exchange.
	rejects = 50
)

// idsOf returns the ids of entries.
func idsOf(all []timers.Entry) (ids []string) {
	for _, e := range all {
		ids = append(ids, e.ID)
	}
	return ids
}

func timersRows(b *bench) {
	b.load("t", b.many)
	b.schedules()
	b.looks()
	b.exchanges()
	b.cancelledRuns()
	b.largest()
	b.removals()
}

func (b *bench) schedules() {
	ctx, s := b.Context(), b.timers(b.rdb)
	for name, with := range map[string]timers.Entry{
		"500 timers": {In: time.Hour}, "500 timers, PolicyKeep": {In: time.Hour, Policy: wakebelltype.PolicyKeep},
		"500 timers, PolicyEarliest": {In: time.Hour, Policy: wakebelltype.PolicyEarliest},
		"500 timers, Debounce":       {In: time.Hour, Policy: wakebelltype.PolicyDebounce, MaxDelay: 2 * time.Hour},
		"500 timers, Once":           {In: time.Hour, Once: time.Minute},
		"500 timers of one key":      {In: time.Hour, Key: "k"},
	} {
		for _, what := range []string{"schedule ", "schedule again "} {
			b.measured(what+name, func(round int) {
				if what != "schedule " {
					round = 0
				}
				_, err := s.Schedule(ctx, "t", entries(name, round, batch, fullSize, with)...)
				b.must(err)
			})
		}
		b.measured("schedule with an idempotency key "+name, func(round int) {
			list := timers.NewBatch("", batch)
			for _, e := range entries(name+"i", round, batch, fullSize, with) {
				b.must(list.Add("t", &e))
			}
			_, err := s.Write(ctx, timers.NewKey("owner", fmt.Sprint(name, round), nil), list)
			b.must(err)
		})
		b.measured("cancel "+name, func(round int) {
			_, err := s.Cancel(ctx, "t", idsOf(entries(name, round, batch, 1, with))...)
			b.must(err)
		})
		b.measured("cancel with an idempotency key "+name, func(round int) {
			_, err := s.CancelKeyed(ctx, "t", timers.NewKey("owner", fmt.Sprint("cancel", name, round), nil), idsOf(entries(name+"w", round, batch, 1, with))...)
			b.must(err)
		})
	}
	for _, mode := range []timers.PutMode{timers.PutKeep, timers.PutReplace} {
		b.measured("import "+string(mode)+" of 200 timers of 50 keys", func(round int) {
			at := time.Now().Add(time.Hour)
			var list []timers.Stored
			for i, id := range ids("put", round%2*keyed, keyed) {
				list = append(list, timers.Stored{ID: id, Key: fmt.Sprint("key ", i%50), Number: int64(i), At: at, Due: at, Claims: i % 2, Payload: text(fullSize)})
			}
			_, err := s.Put(ctx, "t", mode, list)
			b.must(err)
		})
	}
	b.measured("reschedule", func(round int) {
		_, err := s.Reschedule(ctx, "t", "timer-0000001000", time.Time{}, time.Hour+time.Duration(round))
		b.must(err)
	})
	b.measured("run now", func(round int) {
		_, err := s.RunNow(ctx, "t", ids("timer", 2000+round, 1)[0])
		b.must(err)
	})
	b.measured("pause and retune", func(int) {
		_, err := s.Pause(ctx, "t", string(text(200)), string(text(1000)))
		b.must(err)
		_, err = s.Retune(ctx, "t", wakebelltype.Settings{PerKey: 10, RateLimit: 100, RatePer: time.Second})
		b.must(err)
		_, err = s.Resume(ctx, "t")
		b.must(err)
	})
}

func (b *bench) looks() {
	ctx, s := b.Context(), b.store
	b.measured("get", func(int) { _, err := s.Get(ctx, "t", "timer-0000001000"); b.must(err) })
	b.measured("stats", func(int) { _, err := s.Stats(ctx, "t"); b.must(err) })
	b.measured("list 1,000", func(int) { _, _, err := s.List(ctx, "t", timers.Filter{Limit: 1000}); b.must(err) })
	b.measured("list 1,000 that are due later", func(int) {
		_, _, err := s.List(ctx, "t", timers.Filter{Limit: 1000, DueBefore: time.Now().Add(2e6 * time.Second)})
		b.must(err)
	})
	b.measured("list what runs", func(int) {
		_, _, err := s.List(ctx, "t", timers.Filter{Limit: 1000, Leased: true})
		b.must(err)
	})
	src := s.Source("t", timers.SourceOptions{})
	b.measured("peek", func(int) { _, err := src.Peek(ctx); b.must(err) })
	b.measured("collect orphans", func(int) { _, err := src.RemoveOrphans(ctx); b.must(err) })
	b.measured("announce a node among 100", func(round int) {
		for i := range 100 {
			_, err := src.Announce(ctx, exchange.Announcement{Action: exchange.AnnounceJoin, Node: fmt.Sprint("node ", i), Lease: time.Minute})
			b.must(err)
		}
		b.must(src.Report(ctx, fmt.Sprint("node ", round), wakebelltype.NodeState{}, time.Minute))
	})
	b.measured("export", func(int) {
		n := 0
		for _, err := range s.Scan(ctx, "t") {
			if n++; err != nil || n == 1000 {
				b.must(err)
				break
			}
		}
	})
	b.measured("repair, which changes nothing", func(int) {
		_, err := s.Repair(ctx, "t", wakebelltype.RepairOptions{})
		b.must(err)
	})
	b.measured("diagnose", func(int) {
		_, err := doctor.Diagnose(ctx, s, "t")
		b.must(err)
	})
}

// exchanges claims and settles as many timers as the store gives one exchange.
func (b *bench) exchanges() {
	ctx := b.Context()
	for name, s := range map[string]*timers.Timers{"": b.store, ", payloads within the script": b.within()} {
		stream := storetest.NewStream(s.Source("t", timers.SourceOptions{MaxBytes: 1 << 20, MaxClaims: 100, DeadCap: 1000}))
		for _, v := range []exchange.Verdict{exchange.Ack, exchange.Nack, exchange.DeadLetter, exchange.Release, 0} {
			for round := range b.rounds() {
				again := stream.Request(0, time.Minute)
				for range 2 {
					_, err := b.store.Schedule(ctx, "t", entries(fmt.Sprint("due", v, name), round, claims, fullSize, timers.Entry{At: time.Unix(1000, 0)})...)
					b.must(err)
					var reply *exchange.Reply
					b.once("claim"+name, func() { reply = stream.Run(b, stream.Request(claims, time.Minute)) })
					if v == exchange.DeadLetter {
						reply.Leases = reply.Leases[:rejects]
					}
					again = settling(stream, v, reply.Leases)
				}
				_, err := b.store.Schedule(ctx, "t", entries(fmt.Sprint("next", v, name), round, claims, fullSize, timers.Entry{At: time.Unix(1001, 0)})...)
				b.must(err)
				again.Want = claims
				b.once(fmt.Sprintf("settle %d (%s) and claim%s", max(len(again.Settle), len(again.Extend)), verdicts[v], name), func() { stream.Run(b, again) })
				b.once(fmt.Sprintf("answer again%s", name), func() { stream.Run(b, again) })
				_, err = b.store.CancelAll(ctx, "other")
				b.must(err)
			}
		}
	}
}

var verdicts = map[exchange.Verdict]string{
	exchange.Ack: "ack", exchange.Nack: "nack", exchange.DeadLetter: "reject", exchange.Release: "release", exchange.Fail: "fail", 0: "extend",
}

func (b *bench) within() *timers.Timers {
	s := b.timers(b.rdb)
	s.NoPayloadsApart = true
	return s
}

// settling returns a request that settles leases with a verdict, or extends them.
func settling(stream *storetest.Stream, v exchange.Verdict, leases []exchange.Lease) *exchange.Request {
	r := stream.Request(0, time.Minute)
	for _, l := range leases {
		if v == 0 {
			r.Extend = append(r.Extend, storetest.Held(l))
			continue
		}
		s := storetest.Verdict(v, l)
		s.Delay, s.Reason = time.Hour, string(text(1000))
		r.Settle = append(r.Settle, s)
	}
	return r
}

// largest handles timers whose payload is as large as a client may send.
func (b *bench) largest() {
	ctx, s := b.Context(), b.store
	stream := storetest.NewStream(s.Source("large", timers.SourceOptions{}))
	for _, what := range []exchange.Verdict{exchange.Ack, exchange.DeadLetter} {
		b.measured("a payload of 1 MiB: schedule, claim, "+verdicts[what], func(round int) {
			_, err := s.Schedule(ctx, "large", entries("large", round, 1, 1<<20, timers.Entry{At: time.Unix(1000, 0)})...)
			b.must(err)
			stream.Run(b, settling(stream, what, stream.Claim(b, 10).Leases))
		})
	}
	swapped := entries("swapped", 0, 1, 1<<20, timers.Entry{At: time.Unix(4e9, 0)})[0]
	_, err := s.Schedule(ctx, "large", swapped)
	b.must(err)
	b.measured("a payload of 1 MiB: replace it", func(int) {
		swapped, err := s.WithFence(nil).Swap(ctx, "large", swapped.ID, swapped.Payload, swapped.Payload)
		b.must(err)
		if !swapped {
			b.Fatal("it was not replaced")
		}
	})
	b.measured("a payload of 1 MiB: redrive", func(int) {
		stop, cancel := context.WithCancel(ctx)
		_, err := s.Redrive(stop, "large", wakebelltype.RedriveOptions{In: time.Hour, Each: func(wakebelltype.RedrivenLetter) { cancel() }})
		if !errors.Is(err, context.Canceled) {
			b.must(err)
		}
	})
	b.measured("a payload of 1 MiB: list", func(int) { _, _, err := s.List(ctx, "large", timers.Filter{Limit: 1000}); b.must(err) })
}

// removals empties the topic, and removes others.
func (b *bench) removals() {
	ctx := b.Context()
	b.once("cancel all", func() { _, err := b.store.CancelAll(ctx, "t"); b.must(err) })
	b.load("f", b.tens)
	b.once("forget", func() { b.must(b.store.Forget(ctx, "f")) })
	b.load("r", b.tens)
	b.once("remove a topic", func() {
		_, err := b.store.RemoveTopic(ctx, "r")
		if err == nil {
			return
		}
		_, err = b.store.CancelAll(ctx, "r")
		b.must(err)
		_, err = b.store.RemoveTopic(ctx, "r")
		b.must(err)
	})
}

// cancelledRuns cancels timers that run, with ids as long as they may be, schedules them
// again, and extends the leases that they had.
func (b *bench) cancelledRuns() {
	ctx, s := b.Context(), b.store
	stream := storetest.NewStream(s.Source("t", timers.SourceOptions{MaxBytes: 1 << 20}))
	var all []timers.Entry
	for i := range claims {
		all = append(all, timers.Entry{ID: fmt.Sprintf("%0512d", i), At: time.Unix(1000, 0)})
	}
	for range b.rounds() {
		_, err := s.Schedule(ctx, "t", all...)
		b.must(err)
		leases := stream.Run(b, stream.Request(claims, time.Minute)).Leases
		leases = append(leases, stream.Run(b, stream.Request(claims-len(leases), time.Minute)).Leases...)
		b.once("cancel 500 that run", func() { _, err = s.Cancel(ctx, "t", idsOf(all)...) })
		b.must(err)
		_, err = s.Schedule(ctx, "t", all...)
		b.must(err)
		b.once("extend 500 leases of cancelled runs", func() { stream.Extend(b, time.Minute, leases...) })
		_, err = s.Cancel(ctx, "t", idsOf(all)...)
		b.must(err)
	}
}
