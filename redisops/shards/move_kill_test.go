package shards

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestMoveSurvivesKills kills the process that moves a topic to another Redis 100 times,
// at random commands, while nodes handle the timers of both and clients schedule others.
func TestMoveSurvivesKills(t *testing.T) {
	t.Parallel()
	first, second := redistest.Start(t), redistest.Start(t)
	from, to := pair(t, first.Client(t), second.Client(t), 2, 3)
	const kills, plain, keyed = 100, 3000, 200
	began := time.Now()
	want := 0
	var entries []timers.Entry
	for i := range plain {
		at := began.Add(time.Duration(rand.IntN(7_000)) * time.Millisecond)
		entries = append(entries, timers.Entry{ID: fmt.Sprint("p", i), Payload: []byte("plain"), At: at})
	}
	for i := range keyed {
		entries = append(entries, timers.Entry{
			ID: fmt.Sprint("o", i), Key: fmt.Sprint("k", i%20), Payload: []byte(fmt.Sprint("k", i%20)),
			At: began.Add(time.Duration(i/20)*600*time.Millisecond + 300*time.Millisecond),
		})
	}
	from.schedule(t, entries...)
	want += len(entries)

	d := &deliveries{times: map[string]int{}, bodies: map[string]string{}, keys: map[string][]string{}}
	ctx, stop := context.WithCancel(t.Context())
	var processes sync.WaitGroup
	defer processes.Wait()
	defer stop()
	for _, f := range []*fixture{from, to} {
		for _, name := range f.names(t) {
			processes.Go(func() { f.handle(ctx, t, name, d) })
		}
	}
	scheduled := make(chan int, 2)
	for i, f := range []*fixture{from, to} { // some clients use the target, others do not yet
		processes.Go(func() { scheduled <- f.scheduleOthers(ctx, t, fmt.Sprint(i)) })
	}
	move := func(kill *killed) (last MoveProgress, err error) {
		source, target := first.Client(t), second.Client(t)
		source.AddHook(kill)
		target.AddHook(kill)
		s := newStore(t, source, from.timers.Keys().Keys)
		for p, failed := range s.Move(ctx, from.topic, newStore(t, target, to.timers.Keys().Keys), to.topic, wakebelltype.MoveOptions{All: true}) {
			last, err = p, failed
		}
		return last, err
	}
	for range kills {
		kill := &killed{executes: rand.IntN(2) == 0}
		kill.left.Store(20 + rand.Int64N(60))
		_, _ = move(kill)
	}
	want += <-scheduled + <-scheduled
	kill := &killed{}
	kill.left.Store(1 << 40)
	last, err := move(kill)
	require.NoError(t, err)
	require.True(t, last.Done)
	require.Empty(t, from.in(t, from.names(t)))
	require.Eventually(t, func() bool { return d.count() == want }, time.Minute, 10*time.Millisecond, "%d of %d", d.count(), want)
	stop()
	processes.Wait()
	t.Logf("at most %v late", d.late)
	require.Empty(t, d.early)
	for id, n := range d.times {
		require.Equal(t, 1, n, id)
	}
	for key, ids := range d.keys { // no other timers of these keys were scheduled
		for i, id := range ids {
			require.Equal(t, fmt.Sprint("o", i*20+atoi(key[1:])), id, "%s: %v", key, ids)
		}
	}
	for _, name := range from.names(t) {
		k := from.timers.Keys().Of(name)
		n, err := from.exist(t.Context(), k.Leaving(), k.Left())
		require.NoError(t, err)
		require.Zero(t, n)
	}
}

// scheduleOthers schedules timers for some seconds, and returns how many.
func (f *fixture) scheduleOthers(ctx context.Context, t *testing.T, prefix string) (n int) {
	s := f.other(t)
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); n++ {
		entry := timers.Entry{ID: fmt.Sprint("n", prefix, n), Payload: []byte("plain"), In: time.Duration(rand.IntN(3000)) * time.Millisecond}
		if _, err := s.Schedule(ctx, f.topic, entry); err != nil {
			t.Errorf("schedule: %v", err)
			return n
		}
		pause(ctx, 5*time.Millisecond)
	}
	return n
}
