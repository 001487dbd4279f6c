package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	bulkMany = 1_000_000 // timers or dead letters
	bulkLook = 20 * time.Millisecond

	clientMost = "client_most_mib" // of the client's memory more than before, MiB

	sustainedPending = 10_000_000
	sustainedRate    = 30_000
	sustainedFor     = 10 * time.Minute
)

// bulk is what an operator does with a million timers at once, and a rate that is sustained
// for ten minutes while others wait.
func bulk() []trial {
	return []trial{
		{name: "bulk", about: "a million dead letters or timers at once", once: true, contenders: []contender{
			{"redrive", redriveMany}, {"cancel-filter", cancelMany}, {"cancel-all", cancelAllOfMany},
		}},
		{name: "sustained", about: "30,000 timers/s on one topic for ten minutes while 10 M wait", once: true, contenders: []contender{
			{"wakebell", sustained},
		}},
	}
}

// operator returns a client on a connection of its own.
func (w *world) operator() (*wakebell.Client, *redis.Client, error) {
	rdb := w.client(0)
	conn, err := connection.New(rdb, connection.Config{Logger: quiet()})
	if err != nil {
		return nil, nil, err
	}
	c, err := wakebell.NewClient(conn)
	return c, rdb, err
}

// redriveMany makes timers of dead letters again, as fast as a redrive may go.
func redriveMany(ctx context.Context, w *world) (sample, error) {
	const topic = "bulk"
	n, body := w.many(bulkMany), `{"data":"`+strings.Repeat("x", 100)+`","headers":{}}`
	for first := 0; first < n; first += batchSize {
		pipe := w.rdb.Pipeline()
		for i := first; i < min(first+batchSize, n); i++ {
			pipe.XAdd(ctx, &redis.XAddArgs{Stream: "timers_dead:" + topic, Values: []any{
				"id", timerID(i), "claims", 1, "failures", 1, "reason", "no", "activation", 1, "at", 1, "payload", body,
			}})
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return nil, fmt.Errorf("write dead letters: %w", err)
		}
	}
	return w.atOnce(ctx, n, func(c *wakebell.Client) (int, error) {
		done, err := c.Redrive(ctx, topic, wakebelltype.RedriveOptions{In: time.Hour, Rate: 10_000})
		return int(done.Redriven), err
	})
}

// cancelMany lists timers by when they are due, and cancels them in pages.
func cancelMany(ctx context.Context, w *world) (sample, error) {
	const topic = "bulk"
	n := w.many(bulkMany)
	if err := loadPending(ctx, w, topic, 0, n); err != nil {
		return nil, err
	}
	return w.atOnce(ctx, n, func(c *wakebell.Client) (done int, err error) {
		var ids []string
		cancel := func() error {
			_, err := c.Cancel(ctx, topic, ids...)
			done, ids = done+len(ids), ids[:0]
			return err
		}
		for info, err := range c.List(ctx, topic, wakebell.Filter{DueBefore: time.Now().AddDate(1, 0, 0)}, wakebelltype.Page{}) {
			if err != nil {
				return done, err
			}
			if ids = append(ids, info.ID); len(ids) == batchSize {
				if err := cancel(); err != nil {
					return done, err
				}
			}
		}
		return done, cancel()
	})
}

// cancelAllOfMany cancels all timers of a topic in one call.
func cancelAllOfMany(ctx context.Context, w *world) (sample, error) {
	n := w.many(bulkMany)
	if err := loadPending(ctx, w, "bulk", 0, n); err != nil {
		return nil, err
	}
	return w.atOnce(ctx, n, func(c *wakebell.Client) (int, error) {
		done, err := c.CancelAll(ctx, "bulk")
		return int(done), err
	})
}

// atOnce measures a call that concerns n timers, with the most memory that the client has
// meanwhile.
func (w *world) atOnce(ctx context.Context, n int, call func(*wakebell.Client) (int, error)) (sample, error) {
	c, rdb, err := w.operator()
	if err != nil {
		return nil, err
	}
	defer func() { _ = rdb.Close() }()
	before, most, ended := usedMemory(), int64(0), make(chan struct{})
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		for {
			select {
			case <-ended:
				return
			case <-time.After(bulkLook):
				most = max(most, heldMemory())
			}
		}
	}()
	s, err := w.measure(ctx, n, func() error {
		done, err := call(c)
		if err == nil && done != n {
			err = fmt.Errorf("%d of %d", done, n)
		}
		return err
	})
	close(ended)
	<-looked
	if err == nil {
		s[clientMost] = float64(max(most-before, 0)) / (1 << 20)
	}
	return s, err
}

// sustained handles timers at a rate, each scheduled shortly before, while others wait.
func sustained(ctx context.Context, w *world) (sample, error) {
	const topic = "sustained"
	if err := loadPending(ctx, w, topic, 0, w.many(sustainedPending)); err != nil {
		return nil, err
	}
	n := int(w.long(sustainedFor).Seconds()) * sustainedRate
	return lives(ctx, w, topic, n, 200, 0, func(c *wakebell.Client, topic wakebell.Topic[[]byte]) error {
		return scheduleSustained(ctx, c, topic, n)
	})
}

// scheduleSustained schedules batches at the rate, whose timers come due one after the other a
// second later.
func scheduleSustained(ctx context.Context, c *wakebell.Client, topic wakebell.Topic[[]byte], n int) error {
	body, began := make([]byte, 100), time.Now()
	each := time.Second / sustainedRate
	for first := 0; first < n; first += batchSize {
		drafts := make([]wakebell.Draft, 0, batchSize)
		for i := first; i < min(first+batchSize, n); i++ {
			drafts = append(drafts, topic.Draft(body, wakebell.At(began.Add(time.Second+time.Duration(i)*each))))
		}
		if _, err := c.Schedule(ctx, drafts...); err != nil {
			return err
		}
		if err := wait(ctx, time.Until(began.Add(time.Duration(first+batchSize)*each))); err != nil {
			return err
		}
	}
	return nil
}
