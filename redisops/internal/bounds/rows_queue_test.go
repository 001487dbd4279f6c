//go:build !race

package bounds

import (
	"bytes"
	"fmt"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/redisops/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

func (b *bench) queue(name string) *queue.Queue {
	b.Helper()
	q, err := queue.New(b.store, wakebelltype.QueueKeys{Name: name})
	b.must(err)
	return q
}

// fillQueue fills a queue; list and the others are the ends of its keys.
func (b *bench) fillQueue(name, what, list string, n int) {
	b.Helper()
	base := name + "::"
	keys := storetest.QueueKeys{
		List: base + list, Deadlines: base + "processing:lease_deadlines", Tokens: base + "processing:lease_tokens", Counts: base + "processing:delivery_counts",
	}
	b.must(storetest.FillQueue(b.Context(), b.other, keys, what, n))
}

func queueRows(b *bench) {
	ctx, q := b.Context(), b.queue("q")
	b.fillQueue("q", "pending", "pending", b.many)
	b.fillQueue("q", "processing", "processing", b.many/4)
	messages := func(round, size int, key string) []queue.Message {
		all := make([]queue.Message, batch)
		for i := range all {
			all[i] = queue.NewMessage(text(size), "")
			if key != "" {
				all[i].Key = fmt.Sprint(key, round, i)
			}
		}
		return all
	}
	for name, o := range map[string]queue.PublishOptions{
		"publish 500 messages":                  {},
		"publish 500 messages with OwnKeys":     {OwnKeys: true},
		"publish 500 messages, drop the oldest": {Cap: 1000, DropOldest: true},
	} {
		b.measured(name, func(round int) {
			_, _, err := q.Publish(ctx, o, messages(round, fullSize, name)...)
			b.must(err)
		})
	}
	b.fillQueue("q", "pending", "pending", 20_000)
	for _, sized := range []struct {
		name    string
		flow    exchange.Flow
		payload []byte
	}{
		{"", exchange.Flow{}, text(fullSize)},
		{" with RateLimit and MaxInFlight", exchange.Flow{RateLimit: 1_000_000, RatePer: time.Second, RateBurst: 1_000_000, MaxInFlight: 1_000_000}, text(fullSize)},
		{" that are not UTF-8", exchange.Flow{}, bytes.Repeat([]byte{0xff, 0}, fullSize/2)},
	} {
		stream := storetest.NewStream(q.Source(queue.SourceOptions{MaxBytes: 1 << 20, Completed: 1000, Failed: 1000, FreeKeys: true, DeadCap: 1000}))
		for _, v := range []exchange.Verdict{exchange.Ack, exchange.Nack, exchange.DeadLetter, exchange.Release, exchange.Fail, 0} {
			b.measured(fmt.Sprintf("claim 500, and settle them (%s) and claim 500%s", verdicts[v], sized.name), func(int) {
				var list []queue.Message
				for i := range batch {
					list = append(list, queue.NewMessage(sized.payload, fmt.Sprint(v, sized.name, time.Now().UnixNano(), i)))
				}
				_, _, err := q.Publish(ctx, queue.PublishOptions{OwnKeys: true}, list...)
				b.must(err)
				r := stream.Request(claims, time.Minute)
				r.Flow = sized.flow
				again := settling(stream, v, stream.Run(b, r).Leases)
				again.Want, again.Flow = claims, sized.flow
				stream.Run(b, again)
			})
		}
	}
	poison := storetest.NewStream(q.Source(queue.SourceOptions{MaxDeliveries: 1, DeadCap: 1000}))
	b.measured("give up 500 messages", func(int) { poison.Claim(b, claims) })
	once := storetest.NewStream(q.Source(queue.SourceOptions{AtMostOnce: true}))
	b.measured("settle 500 that are delivered at most once", func(int) {
		once.Run(b, settling(once, exchange.Ack, once.Claim(b, claims).Leases))
	})
	b.measured("stats of a queue", func(int) { _, err := q.Stats(ctx); b.must(err) })
	b.once("purge", func() {
		for _, running := range []bool{false, true} {
			_, err := q.Purge(ctx, running)
			b.must(err)
		}
	})
}

func queueDeadRows(b *bench) {
	ctx, q := b.Context(), b.queue("d")
	b.fillQueue("d", "dead", "dlq", b.many)
	src := q.Source(queue.SourceOptions{DeadCap: 1000})
	for range b.many / 1000 { // until all have a place
		_, err := src.RemoveOrphans(ctx)
		b.must(err)
		if b.other.HLen(ctx, "d::dlq:records").Val() > 0 {
			break
		}
	}
	for _, at := range []int{0, b.many / 4, b.many / 2, b.many - 5000} {
		var page []wakebelltype.QueueDeadLetter
		b.measured("list 1,000 dead letters of a queue", func(int) {
			var err error
			page, _, err = q.DeadLetters(ctx, "", fmt.Sprint(at), 1000)
			b.must(err)
		})
		b.measured("redrive a dead letter of a queue", func(round int) {
			_, _, err := q.RedriveLetter(ctx, page[round], "", queue.PublishOptions{})
			b.must(err)
		})
		b.measured("delete 100 dead letters of a queue", func(round int) {
			page, _, err := q.DeadLetters(ctx, "", fmt.Sprint(at), 100)
			b.must(err)
			_, err = q.DiscardLetters(ctx, page...)
			b.must(err)
		})
	}
	b.measured("collect orphans of a queue", func(int) { _, err := src.RemoveOrphans(ctx); b.must(err) })
	stream := storetest.NewStream(src)
	b.measured("reject 500 with a million dead letters", func(int) {
		_, _, err := q.Publish(ctx, queue.PublishOptions{}, func() (all []queue.Message) {
			for range batch {
				all = append(all, queue.NewMessage(text(fullSize), ""))
			}
			return all
		}()...)
		b.must(err)
		stream.Run(b, settling(stream, exchange.DeadLetter, stream.Claim(b, claims).Leases))
	})
}
