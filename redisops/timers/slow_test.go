package timers

import (
	"context"
	goflag "flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// measureSlow is set by make script-bounds. Without it the same calls are made at a tenth of the
// sizes or less and no time is judged: there, redisops/internal/bounds counts commands instead.
var measureSlow = goflag.Bool("slow.measure", false, "measure for how long commands block Redis, at the sizes of docs/scale.md")

// slowest is how long a command may block Redis.
const slowest = 10 * time.Millisecond

// loadScript writes timers and dead letters within Redis: from, to, the instant of
// the first, and the number of dead letters.
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
for j = 1, tonumber(ARGV[4]) do
  redis.call('XADD', KEYS[3], '*', 'id', 'dead-' .. j, 'payload', body, 'claims', '1', 'failures', '1',
    'reason', 'reason ' .. j % 10, 'activation', '5', 'at', '6')
end
return 0`)

// load fills a topic with timers, the first of them due at an instant, and with
// dead letters.
func (f *fixture) load(t *testing.T, timers, dead int, first int64) {
	t.Helper()
	const step = 10_000
	for from := 0; from < max(timers, dead); from += step {
		keys := []string{f.key.Timeline, f.key.Payloads, f.key.Dead}
		err := loadScript.Run(t.Context(), f.rdb, keys, from, min(from+step, timers), first, max(0, min(step, dead-from))).Err()
		require.NoError(t, err)
	}
}

// requireQuick requires that each command of a call blocks Redis for at most
// slowest. If one took longer by the clock, other processes of the machine may have
// used the processor; then the CPU time of Redis counts: for each command on
// average, and the best of several tries, in proportion to the time that fixed work takes
// beside each.
func (f *fixture) requireQuick(t *testing.T, name string, call func(try int) error) {
	t.Helper()
	if !*measureSlow {
		require.NoError(t, call(0), name)
		return
	}
	const tries = 10
	best, command := time.Hour, ""
	for try := range tries {
		require.NoError(t, f.rdb.SlowLogReset(t.Context()).Err())
		before := cpuSeconds(t, f.rdb.Info(t.Context(), "cpu").Val())
		require.NoError(t, call(try), name)
		spent := cpuSeconds(t, f.rdb.Info(t.Context(), "cpu").Val()) - before
		log, err := f.rdb.SlowLogGet(t.Context(), -1).Result()
		require.NoError(t, err)
		log = topLevel(log)
		require.NotEmpty(t, log, name)
		longest := slices.MaxFunc(log, func(a, b redis.SlowLog) int { return int(a.Duration - b.Duration) })
		average := time.Duration(spent * float64(time.Second) / float64(len(log)))
		held := min(longest.Duration, average)
		if held > slowest {
			held = time.Duration(float64(held) / max(redistest.Slowness(t, f.rdb), 1))
		}
		if held < best {
			best, command = held, strings.Join(longest.Args, " ")
		}
		if best <= slowest {
			return
		}
	}
	require.LessOrEqual(t, best, slowest, "%s: %.200s", name, command)
}

// topLevel removes the test's own commands and, if there are scripts, the commands
// within them.
func topLevel(log []redis.SlowLog) []redis.SlowLog {
	is := func(names ...string) func(redis.SlowLog) bool {
		return func(l redis.SlowLog) bool { return slices.Contains(names, strings.ToLower(l.Args[0])) }
	}
	script := is("evalsha", "eval", "unlink")
	if slices.ContainsFunc(log, script) {
		return slices.DeleteFunc(log, func(l redis.SlowLog) bool { return !script(l) })
	}
	return slices.DeleteFunc(log, is("slowlog", "info"))
}

// TestNothingHoldsUpRedis checks that no command of the store blocks Redis for
// long, at the sizes of docs/scale.md if it measures.
func TestNothingHoldsUpRedis(t *testing.T) {
	t.Parallel()
	timers, dead := 20_000, 2_000
	if *measureSlow {
		timers, dead = 1_000_000, 100_000
	}
	f := newFixture(t, redistest.Start(t, "--save", "", "--appendonly", "no").Client(t))
	f.load(t, timers, dead, time.Now().Add(time.Hour).Unix())
	require.NoError(t, f.rdb.ConfigSet(t.Context(), "slowlog-max-len", "100000").Err())
	require.NoError(t, f.rdb.ConfigSet(t.Context(), "slowlog-log-slower-than", "0").Err())
	f.quickToLook(t, timers)
	f.quickToChange(t)
	f.quickToExchange(t)
	f.quickDeadLetters(t)
	f.quickToRemove(t, timers/4)
}

func (f *fixture) quickToLook(t *testing.T, timers int) {
	t.Helper()
	ctx := t.Context()
	quick := func(name string, call func() error) {
		t.Helper()
		f.requireQuick(t, name, func(int) error { return call() })
	}
	quick("get", func() error { _, err := f.Get(ctx, f.topic, "timer-0000001000"); return err })
	quick("stats", func() error { _, err := f.Stats(ctx, f.topic); return err })
	quick("overview", func() error { _, err := f.Overview(ctx, f.topic); return err })
	quick("topics", func() error { _, _, err := f.Topics(ctx, 0); return err })
	quick("discover topics", func() error { _, _, err := f.DiscoverTopics(ctx, 0); return err })
	quick("behind", func() error { _, err := f.Behind(ctx, []string{f.topic}); return err })
	quick("peek", func() error { _, err := f.src.Peek(ctx); return err })
	quick("scan", func() error {
		n := 0
		for _, err := range f.Scan(ctx, f.topic) {
			if n++; err != nil || n == 1000 {
				return err
			}
		}
		return nil
	})
	quick("check", func() error { return f.Check(ctx, []string{f.topic}) })
	quick("heal", func() error { _, err := f.src.RemoveOrphans(ctx); return err })
	for name, filter := range map[string]Filter{
		"list": {Limit: 1000}, "list what is due": {Limit: 1000, DueBefore: time.Now()},
		"list what is due later": {Limit: 1000, DueBefore: time.Now().Add(1e6 * time.Second)},
		"list what runs":         {Limit: 1000, Leased: true},
		"list after a timer":     {Limit: 1000, After: newCursor("1e+10", "timer")},
		"list what runs after":   {Limit: 1000, Leased: true, After: newCursor("1e+10", "timer")},
	} {
		quick(name, func() error { _, _, err := f.List(ctx, f.topic, filter); return err })
	}
	stats, err := f.Stats(ctx, f.topic)
	require.NoError(t, err)
	require.EqualValues(t, timers, stats.Total)
}

// batchOf returns as many entries as one call carries, with ids of a try.
func batchOf(name string, try int, with Entry) []Entry {
	entries := make([]Entry, layout.BatchEntries)
	for i := range entries {
		entries[i] = with
		entries[i].ID, entries[i].Payload = fmt.Sprintf("%s-%d-%d", name, try, i), []byte(strings.Repeat("x", 200))
	}
	return entries
}

func (f *fixture) quickToChange(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	for name, with := range map[string]Entry{
		"replace": {In: time.Hour}, "keep": {In: time.Hour, Policy: wakebelltype.PolicyKeep}, "earliest": {In: time.Hour, Policy: wakebelltype.PolicyEarliest},
		"debounce": {In: time.Hour, Policy: wakebelltype.PolicyDebounce, MaxDelay: 2 * time.Hour}, "once": {In: time.Hour, Once: time.Minute},
	} {
		for _, ids := range []string{"new", "again"} {
			f.requireQuick(t, "schedule: "+name+" "+ids, func(try int) error {
				if ids == "again" {
					try = 0
				}
				_, err := f.Schedule(ctx, f.topic, batchOf(name, try, with)...)
				return err
			})
		}
		f.requireQuick(t, "schedule with a key: "+name, func(try int) error {
			key := NewKey("owner", fmt.Sprint(name, try), nil)
			_, err := f.scheduleKeyed(ctx, key, batchOf(name+" keyed", try, with)...)
			return err
		})
		f.requireQuick(t, "cancel: "+name, func(try int) error {
			var ids []string
			for _, e := range batchOf(name, try, with) {
				ids = append(ids, e.ID)
			}
			_, err := f.Cancel(ctx, f.topic, ids...)
			return err
		})
	}
	for _, mode := range []PutMode{PutKeep, PutReplace} {
		f.requireQuick(t, "put "+string(mode), func(try int) error {
			var list []Stored
			for i, e := range batchOf("put", try%2, Entry{}) {
				at := time.Now().Add(time.Hour)
				list = append(list, Stored{ID: e.ID, Key: fmt.Sprint("key ", i%50), Number: int64(i), At: at, Due: at, Claims: i % 2, Payload: e.Payload})
			}
			_, err := f.Put(ctx, f.topic, mode, list)
			return err
		})
	}
	f.requireQuick(t, "reschedule", func(try int) error {
		_, err := f.Reschedule(ctx, f.topic, "timer-0000001000", time.Time{}, time.Hour+time.Duration(try))
		return err
	})
	f.requireQuick(t, "run now", func(try int) error {
		_, err := f.RunNow(ctx, f.topic, fmt.Sprintf("timer-%010d", 2000+try))
		return err
	})
	f.requireQuick(t, "pause", func(int) error { _, err := f.Pause(ctx, f.topic, "", ""); return err })
	f.requireQuick(t, "resume", func(int) error { _, err := f.Resume(ctx, f.topic); return err })
}

func (f *fixture) quickToExchange(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	for _, v := range []exchange.Verdict{exchange.Ack, exchange.Nack, exchange.DeadLetter, exchange.Release, 0} {
		f.requireQuick(t, fmt.Sprintf("exchange with verdict %d", v), func(try int) error {
			if _, err := f.Schedule(ctx, f.topic, batchOf(fmt.Sprintf("due-%d", v), try, Entry{At: time.Unix(1000, 0)})...); err != nil {
				return err
			}
			reply, err := f.src.Exchange(ctx, f.Request(500, time.Minute))
			if err != nil {
				return err
			}
			require.Len(t, reply.Leases, claimMost)
			again := f.Request(500, time.Minute)
			for _, l := range reply.Leases {
				if v == 0 {
					again.Extend = append(again.Extend, storetest.Held(l))
					continue
				}
				s := storetest.Verdict(v, l)
				s.Delay, s.Reason = time.Hour, "reason"
				again.Settle = append(again.Settle, s)
			}
			if _, err = f.src.Exchange(ctx, again); err != nil {
				return err
			}
			_, err = f.src.Exchange(ctx, again) // answered again
			return err
		})
	}
	for range 3 {
		f.schedule(t, batchOf("due", f.rank(), Entry{At: time.Unix(1000, 0)})...)
		f.Claim(t, claimMost)
	}
	f.requireQuick(t, "list what runs, many", func(int) error {
		_, _, err := f.List(ctx, f.topic, Filter{Leased: true, Limit: 1000})
		return err
	})
	f.requireQuick(t, "stats of many leases", func(int) error { _, err := f.Stats(ctx, f.topic); return err })
}

func (f *fixture) rank() int { return int(f.Sequence) } //nolint:gosec // a number that is new

func (f *fixture) quickDeadLetters(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	for name, filter := range map[string]wakebelltype.DeadFilter{
		"dead letters": {}, "of a reason": {Reason: "reason 3"}, "of no reason": {Reason: "none"},
		"of a prefix": {ReasonPrefix: "reason 1"}, "old ones": {OlderThan: time.Hour}, "new ones": {NewerThan: time.Millisecond},
	} {
		f.requireQuick(t, name, func(int) error { _, _, err := f.DeadLetters(ctx, f.topic, filter, "", 1000); return err })
	}
	var last []DeadLetter
	f.requireQuick(t, "last dead letters", func(int) (err error) { last, err = f.LastDead(ctx, f.topic, 1000); return err })
	f.requireQuick(t, "redrive the newest", func(try int) error {
		_, err := f.Redrive(ctx, f.topic, wakebelltype.RedriveOptions{Filter: wakebelltype.DeadFilter{Entry: last[len(last)-1-try].Entry}, In: time.Hour})
		return err
	})
	f.requireQuick(t, "delete the newest", func(try int) error {
		_, err := f.DeleteDead(ctx, f.topic, wakebelltype.DeadFilter{Entry: last[len(last)-100-try].Entry})
		return err
	})
	f.requireQuick(t, "redrive", func(try int) error {
		stop, cancel := context.WithCancel(ctx)
		defer cancel()
		n := 0
		_, err := f.Redrive(stop, f.topic, wakebelltype.RedriveOptions{Rate: maxRate, In: time.Hour, Each: func(wakebelltype.RedrivenLetter) {
			if n++; n == 500 {
				cancel()
			}
		}})
		require.ErrorIs(t, err, context.Canceled)
		return nil
	})
	f.requireQuick(t, "delete", func(try int) error {
		_, err := f.DeleteDead(ctx, f.topic, wakebelltype.DeadFilter{ReasonPrefix: fmt.Sprint("reason ", try%10)})
		return err
	})
}

// quickToRemove removes the loaded timers and, for further tries, topics of the
// given number of timers.
func (f *fixture) quickToRemove(t *testing.T, timers int) {
	t.Helper()
	big := f.topic
	f.requireQuick(t, "cancel all", func(try int) error {
		topic := f
		if try > 0 {
			topic = f.on(fmt.Sprint(big, try))
			topic.load(t, timers, 0, 5)
			require.NoError(t, f.rdb.SlowLogReset(t.Context()).Err())
		}
		_, err := f.CancelAll(t.Context(), topic.topic)
		return err
	})
	f.requireQuick(t, "forget", func(try int) error {
		topic := f.on(fmt.Sprint(big, "forgotten", try))
		topic.load(t, timers, 10_000, 5)
		require.NoError(t, f.rdb.SlowLogReset(t.Context()).Err())
		return f.Forget(t.Context(), topic.topic)
	})
}
