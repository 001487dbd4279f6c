//go:build !race

package bounds

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops/shards"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// content is timers that are moved.
type content struct {
	name             string
	timers, keys     int // keys 0: none
	size             int // of a payload
	measuredSizeOnly bool
}

var contents = []content{
	{"2,000 timers", 2000, 0, 1000, false},
	{"timers of 1 MiB", 10, 0, 1 << 20, false},
	{"a key of 2,000 timers", 2000, 1, 500, false},
	{"a key of 2,000 timers of 100 KB", 2000, 1, 100 << 10, true},
	{"200 keys of 500 timers", 100_000, 200, 100, true},
	{"20 keys of 500 timers", 10_000, 20, 100, false},
}

// fill schedules a content.
func (b *bench) fill(topic string, c content) {
	b.Helper()
	all := make([]timers.Entry, c.timers)
	at := time.Now().Add(24 * time.Hour)
	for i, id := range ids("timer", 0, c.timers) {
		all[i] = timers.Entry{ID: id, Payload: text(c.size), At: at}
		if c.keys > 0 {
			all[i].Key = fmt.Sprint("key ", i%c.keys)
		}
	}
	inParts(all, batch, func(part []timers.Entry) {
		_, err := b.unmeasured().Schedule(b.Context(), topic, part...)
		b.must(err)
	})
}

func (b *bench) shards(rdb *timers.Timers) *shards.Store { return shards.New(rdb) }

// shardsRows moves timers to other shards and to another Redis, with all that a topic has.
func shardsRows(b *bench) {
	for _, c := range contents {
		if c.measuredSizeOnly && !*measure {
			continue
		}
		topic := fmt.Sprintf("%s %x", c.name, rand.Uint32())
		b.fill(topic, c)
		b.records(topic)
		if c.name == contents[0].name || *measure { // which waits for the clients to know the layout
			b.reshard(topic, c)
		}
		b.moveAway(topic, c.name)
	}
	b.answers()
	b.divide()
	b.abort()
}

// answers makes calls with idempotency keys in a topic that has a layout, and repeats them.
func (b *bench) answers() {
	ctx, fence := b.Context(), &timers.Fence{Layout: "x"}
	b.must(b.other.Set(ctx, b.store.Keys().Of("answers").Layout(), "x {}", 0).Err())
	s := b.timers(b.rdb)
	for _, of := range []string{"", "k"} {
		b.measured("calls with an idempotency key in a shard, key "+of, func(round int) {
			key := timers.NewKey("owner", fmt.Sprint("write", of, round), nil)
			all := entries("answers"+of, round, batch, fullSize, timers.Entry{In: time.Hour, Key: of})
			for _, part := range [][]timers.Entry{all[:batch/2], all, all} { // as one that died in between
				list := timers.NewBatch("", batch)
				for i := range part {
					b.must(list.Add("answers", &part[i]))
				}
				b.must(list.Fence(func(string) (*timers.Fence, error) { return fence, nil }))
				_, err := s.Write(ctx, key, list)
				b.must(err)
			}
			_, err := s.WithFence(fence).RecallWrite(ctx, "answers", key, all)
			b.must(err)
			key = timers.NewKey("owner", fmt.Sprint("cancel", of, round), nil)
			for range 2 {
				_, err = s.WithFence(fence).CancelKeyed(ctx, "answers", key, idsOf(all)...)
				b.must(err)
			}
			_, err = s.WithFence(fence).RecallCancel(ctx, "answers", key, idsOf(all)...)
			b.must(err)
		})
	}
}

// records gives a topic dead letters, a history, counts, runs and marks.
func (b *bench) records(topic string) {
	b.Helper()
	ctx, s := b.Context(), b.unmeasured()
	b.dead(topic, 1000, 2000)
	for i := range 5 {
		b.must(s.WriteHistory(ctx, topic, "node", attempts(100)))
		b.must(s.WriteCounts(ctx, topic, fmt.Sprint("node ", i), 1, wakebelltype.ThroughputCounts{Handled: 5}))
	}
	counts := map[string]any{}
	for i := range 90 + 24*60 { // as many days and minutes as are kept
		counts[fmt.Sprint(i, ":handled")] = 5
	}
	b.must(b.other.HSet(ctx, s.Keys().Of(topic).Counts, counts).Err())
	runs := map[string]any{}
	for _, name := range ids("schedule", 0, 10_000) {
		runs[name] = "incarnation 12345"
	}
	b.must(b.other.HSet(ctx, s.Keys().Of(topic).Runs, runs).Err())
	for _, key := range ids("key", 0, 1000) {
		at := float64(time.Now().Add(24 * time.Hour).Unix())
		b.must(b.other.ZAdd(ctx, s.Keys().Of(topic).KeyRates, redis.Z{Score: at, Member: key}).Err())
	}
	for i := range 3 {
		_, err := s.Schedule(ctx, topic, timers.Entry{ID: fmt.Sprint("once ", i), At: time.Now().Add(24 * time.Hour), Once: time.Hour, Payload: text(10)})
		b.must(err)
	}
}

func (b *bench) reshard(topic string, c content) {
	ctx := b.Context()
	store, client := b.shards(b.store), b.shards(b.timers(b.rdb))
	calls := 0
	for p, err := range store.Reshard(ctx, topic, 4) {
		b.must(err)
		b.probe.begin("reshard " + c.name)
		if !p.Layout.Moves() || calls > 2 {
			continue
		}
		calls++
		b.probe.begin("500 timers while they move")
		for _, key := range []string{"", "new "} { // timers that have not moved yet, and others
			all := make([]timers.Entry, min(batch, c.timers))
			for i, id := range ids("timer", (calls-1)*batch%c.timers, len(all)) {
				all[i] = timers.Entry{ID: key + id, In: 24 * time.Hour, Payload: text(c.size), Key: key}
				if key == "" && c.keys > 0 {
					all[i].Key = fmt.Sprint("key ", i%c.keys)
				}
			}
			_, err := client.Schedule(ctx, topic, all...)
			b.must(err)
			_, err = client.RunNow(ctx, topic, all[0].ID)
			b.must(err)
			_, err = client.Cancel(ctx, topic, idsOf(all[:len(all)/2])...)
			b.must(err)
		}
		b.probe.begin("reshard " + c.name)
	}
	b.probe.end()
}

func (b *bench) moveAway(topic, name string) {
	ctx := b.Context()
	target := b.shards(b.timers(b.db1))
	b.once("move "+name, func() {
		for _, err := range b.shards(b.store).Move(ctx, topic, target, topic, wakebelltype.MoveOptions{All: true}) {
			b.must(err)
		}
	})
	b.must(b.db1.FlushDB(ctx).Err())
}

// divide divides a topic without timers.
func (b *bench) divide() {
	b.measured("divide into 256 shards", func(round int) {
		_, err := b.shards(b.store).Divide(b.Context(), fmt.Sprint("divided ", round), 256)
		b.must(err)
	})
}

// abort aborts moves.
func (b *bench) abort() {
	ctx := b.Context()
	b.fill("aborted", contents[2]) // a key of which a part has left
	for _, err := range b.shards(b.store).Move(ctx, "aborted", b.shards(b.timers(b.db1)), "aborted", wakebelltype.MoveOptions{}) {
		b.must(err)
		break
	}
	b.once("abort a move", func() {
		_, err := b.shards(b.store).AbortMove(ctx, "aborted")
		b.must(err)
	})
}

// attempts returns entries of a history.
func attempts(n int) []wakebelltype.Attempt {
	all := make([]wakebelltype.Attempt, n)
	for i, id := range ids("timer", 0, n) {
		all[i] = wakebelltype.Attempt{ID: id, Attempt: 1, Started: time.Now(), Outcome: wakebelltype.EventAcked, Error: string(text(256))}
	}
	return all
}
