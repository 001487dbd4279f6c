package durable

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/internal/embedded/contents"
	"github.com/wakebell/wakebell/internal/journal/journaltest"
)

// started is the clock of the first command of a model, in Unix milliseconds.
const started = 1_800_000_000_000

// step is how long each command takes on that clock. Keys expire after a few commands.
const step = 10

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func openOn(t require.TestingT, disk *journaltest.Disk, o Options) *Store {
	o.Logger = quiet()
	s, err := open(disk, o)
	require.NoError(t, err)
	return s
}

// dump returns all that a store has, in order.
func dump(t require.TestingT, s *Store) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := contents.Of(s.m)
	require.NoError(t, err)
	return all.String()
}

// command draws a command of each type, of few keys, so that they meet.
func command(t *rapid.T) []string {
	key := func(kind string) string { return kind + rapid.SampledFrom([]string{"1", "2"}).Draw(t, "key") }
	m := rapid.SampledFrom([]string{"a", "b", "c", "d\x00\r\n", ""})
	n := rapid.IntRange(-3, 60)
	num := func() string { return fmt.Sprint(n.Draw(t, "n")) }
	some := func() string { return m.Draw(t, "m") }
	all := []func() []string{
		func() []string { return []string{"SET", key("s"), some(), "PX", fmt.Sprint(n.Draw(t, "n") + 10)} },
		func() []string { return []string{"set", key("s"), num()} },
		func() []string { return []string{"INCRBY", key("s"), num()} },
		func() []string { return []string{"HSET", key("h"), some(), num(), some(), some()} },
		func() []string { return []string{"HINCRBY", key("h"), some(), num()} },
		func() []string { return []string{"HDEL", key("h"), some()} },
		func() []string { return []string{"ZADD", key("z"), num() + ".25", some()} },
		func() []string { return []string{"ZADD", key("z"), "-inf", some()} },
		func() []string { return []string{"ZPOPMIN", key("z")} },
		func() []string { return []string{"ZREMRANGEBYSCORE", key("z"), "-inf", num()} },
		func() []string { return []string{"RPUSH", key("l"), some(), num()} },
		func() []string { return []string{"LMOVE", "l1", "l2", "LEFT", "RIGHT"} },
		func() []string { return []string{"SADD", key("e"), some(), num()} },
		func() []string { return []string{"SREM", key("e"), some()} },
		func() []string { return []string{"XADD", key("x"), "MAXLEN", "3", "*", "f", some()} },
		func() []string { return []string{"XDEL", key("x"), fmt.Sprint(started+step*n.Draw(t, "n"), "-0")} },
		func() []string { return []string{"XGROUP", "CREATE", key("x"), "g", "0", "MKSTREAM"} },
		func() []string {
			return []string{"XREADGROUP", "GROUP", "g", some() + "c", "COUNT", "1", "STREAMS", key("x"), ">"}
		},
		func() []string { return []string{"XACK", key("x"), "g", fmt.Sprint(started+step*n.Draw(t, "n"), "-0")} },
		func() []string {
			return []string{"PEXPIRE", key(m.Filter(func(s string) bool { return s != "" }).Draw(t, "kind")), num()}
		},
		func() []string { return []string{"PEXPIRE", key("h"), num()} },
		func() []string {
			return []string{"DEL", key(rapid.SampledFrom([]string{"h", "z", "x", "s"}).Draw(t, "kind"))}
		},
		func() []string { return []string{"RENAME", "h1", "h2"} },
		func() []string { return []string{"GET", "s1"} },
		func() []string { return []string{"EVAL", script, "2", key("s"), key("h"), some()} },
		func() []string { return []string{"EVAL", "return redis.call('HSET', KEYS[1], 'a', 1, 'b')", "1", "h1"} },
	}
	return rapid.SampledFrom(all).Draw(t, "command")()
}

// script fails in the middle if the second key is no hash.
const script = `local t = redis.call('TIME')
redis.call('SET', KEYS[1], t[1] .. '.' .. t[2])
redis.call('PEXPIRE', KEYS[1], 55)
redis.call('HSET', KEYS[2], ARGV[1], t[2])
return redis.call('HGETALL', KEYS[2])`

// history is what a store is made to execute: batches of commands that are sent together,
// some as transactions.
type history []batch

type batch struct {
	atomic   bool
	commands [][]string
}

func drawHistory(t *rapid.T) history {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) batch {
		return batch{
			atomic:   rapid.IntRange(0, 3).Draw(t, "transaction") == 0,
			commands: rapid.SliceOfN(rapid.Custom(command), 1, 6).Draw(t, "commands"),
		}
	}), 1, 12).Draw(t, "history")
}

// clockOf returns a clock on which each call takes step.
func clockOf() func() int64 {
	var calls atomic.Int64
	return func() int64 { return started + step*calls.Add(1) }
}

// run executes a history. after is called after each batch was acknowledged.
func run(ctx context.Context, s *Store, h history, after func(batch)) {
	rdb := s.Client()
	defer func() { _ = rdb.Close() }()
	for _, b := range h {
		send := rdb.Pipelined
		if b.atomic {
			send = rdb.TxPipelined
		}
		_, _ = send(ctx, func(pipe redis.Pipeliner) error { // commands may fail
			for _, args := range b.commands {
				words := make([]any, len(args))
				for i, a := range args {
					words[i] = a
				}
				pipe.Do(ctx, words...)
			}
			return nil
		})
		after(b)
	}
}

// states returns the state after each unit of a history: a command or a transaction.
// The clock counts only these: HELLO and others of the connection do not change it.
func states(ctx context.Context, t require.TestingT, h history) []string {
	s := openOn(t, journaltest.New(), Options{now: func() int64 { return started }})
	defer func() { require.NoError(t, s.Close()) }()
	all := []string{dump(t, s)}
	clock := int64(started)
	s.now = func() int64 { return clock }
	for _, b := range h {
		units := history{{atomic: true, commands: b.commands}}
		if !b.atomic {
			units = nil
			for _, c := range b.commands {
				units = append(units, batch{commands: [][]string{c}})
			}
		}
		for _, u := range units {
			run(ctx, s, history{u}, func(batch) {})
			all = append(all, dump(t, s))
		}
	}
	return all
}

func TestStateAfterPowerCutHasEveryAcknowledgedWrite(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) { checkCrash(rt, true) })
}

func TestStateAfterKillHasEveryAcknowledgedWrite(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) { checkCrash(rt, false) })
}

// checkCrash stops the disk at an operation, and compares what the next start reads with
// the states after the commands that were sent. Time stands still: TestReplay… has the
// clock.
func checkCrash(rt *rapid.T, power bool) {
	ctx := context.Background()
	h := drawHistory(rt)
	expected := states(ctx, rt, h)
	disk := journaltest.New()
	s := openOn(rt, disk, Options{now: func() int64 { return started }, snapshotAfter: 600})
	var acked atomic.Int64
	crash := rapid.IntRange(0, 120).Draw(rt, "crash")
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0)) //nolint:gosec // not a secret
	var once sync.Once
	var image *journaltest.Disk
	least := 0
	take := func(d *journaltest.Disk) {
		once.Do(func() {
			least = int(acked.Load())
			if power {
				image = d.Cut(random.IntN)
			} else {
				image = d.Killed()
			}
		})
	}
	disk.Watch(func(d *journaltest.Disk) {
		if crash--; crash < 0 {
			take(d)
		}
	})
	run(ctx, s, h, func(b batch) {
		if b.atomic {
			acked.Add(1)
		} else {
			acked.Add(int64(len(b.commands)))
		}
	})
	disk.Watch(nil)
	disk.Look(take) // a snapshot may be on its way
	require.NoError(rt, s.Close())

	after := openOn(rt, image, Options{now: func() int64 { return started }})
	got := dump(rt, after)
	require.NoError(rt, after.Close())
	require.Contains(rt, expected[least:], got, "acknowledged: %d of %d", least, len(expected)-1)

	again := openOn(rt, image, Options{now: func() int64 { return started }})
	require.Equal(rt, got, dump(rt, again), "a second start")
	require.NoError(rt, again.Close())
}

// The clock moves with each command, so that keys expire between them.
func TestReplayGivesTheSameState(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.Background()
		h := drawHistory(rt)
		disk := journaltest.New()
		s := openOn(rt, disk, Options{now: clockOf(), snapshotAfter: rapid.SampledFrom([]int64{1, 600, 1 << 30}).Draw(rt, "snapshots")})
		run(ctx, s, h, func(batch) {})
		if rapid.Bool().Draw(rt, "snapshot at the end") {
			require.NoError(rt, s.snapshot())
		}
		s.mu.Lock()
		last := s.clock + 1000
		s.tick(last)
		s.mu.Unlock()
		expected := dump(rt, s)
		require.NoError(rt, s.Close())

		after := openOn(rt, disk, Options{})
		after.tick(last)
		require.Equal(rt, expected, dump(rt, after))
		require.NoError(rt, after.Close())
	})
}
