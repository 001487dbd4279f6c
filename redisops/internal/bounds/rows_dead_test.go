//go:build !race

package bounds

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// deadScript writes dead letters within Redis: their number, and the size of a payload.
var deadScript = redis.NewScript(`
local body = string.rep('x', tonumber(ARGV[2]))
for j = 1, tonumber(ARGV[1]) do
  redis.call('XADD', KEYS[1], '*', 'id', 'dead-' .. j, 'payload', body, 'claims', '1', 'failures', '1',
    'reason', 'reason ' .. j % 10, 'activation', '5', 'at', '6')
end
return 0`)

func (b *bench) dead(topic string, n, size int) {
	b.Helper()
	for ; n > 0; n -= 10_000 {
		b.must(deadScript.Run(b.Context(), b.other, []string{b.store.Keys().Of(topic).Dead}, min(n, 10_000), size).Err())
	}
}

func deadRows(b *bench) {
	ctx, s := b.Context(), b.store
	b.dead("t", b.tens, 200)
	b.load("t", b.tens)
	for name, filter := range map[string]wakebelltype.DeadFilter{
		"1,000 dead letters": {}, "dead letters of a reason": {Reason: "reason 3"}, "dead letters of no reason": {Reason: "none"},
		"dead letters of a prefix": {ReasonPrefix: "reason 1"}, "old dead letters": {OlderThan: time.Hour},
	} {
		b.measured("list "+name, func(int) { _, _, err := s.DeadLetters(ctx, "t", filter, "", 1000); b.must(err) })
	}
	var last []timers.DeadLetter
	b.measured("the last 1,000 dead letters", func(int) {
		var err error
		last, err = s.LastDead(ctx, "t", 1000)
		b.must(err)
	})
	b.measured("redrive the newest", func(round int) {
		_, err := s.Redrive(ctx, "t", wakebelltype.RedriveOptions{Filter: wakebelltype.DeadFilter{Entry: last[len(last)-1-round].Entry}, In: time.Hour})
		b.must(err)
	})
	b.measured("delete the newest", func(round int) {
		_, err := s.DeleteDead(ctx, "t", wakebelltype.DeadFilter{Entry: last[len(last)-100-round].Entry})
		b.must(err)
	})
	for _, size := range []int{200, 20_000} {
		topic := fmt.Sprint("redriven ", size)
		b.dead(topic, b.tens/max(1, size/1000), size)
		b.measured(fmt.Sprintf("redrive dead letters of %d bytes", size), func(int) { b.redrive(topic, wakebelltype.RedriveOptions{Rate: 10_000, In: time.Hour}) })
		b.measured(fmt.Sprintf("redrive dead letters of %d bytes and overwrite", size), func(int) {
			b.redrive(topic, wakebelltype.RedriveOptions{Rate: 10_000, Overwrite: true, In: time.Hour})
		})
		b.measured(fmt.Sprintf("delete dead letters of %d bytes", size), func(round int) {
			_, err := s.DeleteDead(ctx, topic, wakebelltype.DeadFilter{ReasonPrefix: fmt.Sprint("reason ", round)})
			b.must(err)
		})
	}
}

// redrive redrives some dead letters.
func (b *bench) redrive(topic string, o wakebelltype.RedriveOptions) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	n := 0
	o.Each = func(wakebelltype.RedrivenLetter) {
		if n++; n == 500 {
			cancel()
		}
	}
	if _, err := b.store.Redrive(ctx, topic, o); !errors.Is(err, context.Canceled) {
		b.must(err)
	}
}
