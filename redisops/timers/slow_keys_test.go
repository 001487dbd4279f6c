//go:build !race

package timers

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
)

// TestNoKeyHoldsUpRedis checks that no command blocks Redis for long, however many timers
// a key has, and at the largest settings of limits by key.
func TestNoKeyHoldsUpRedis(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Start(t, "--save", "", "--appendonly", "no").Client(t))
	require.NoError(t, f.rdb.ConfigSet(t.Context(), "slowlog-max-len", "100000").Err())
	require.NoError(t, f.rdb.ConfigSet(t.Context(), "slowlog-log-slower-than", "0").Err())
	for name, flow := range map[string]exchange.Flow{
		"1 of a key": {PerKey: 1}, "1,000 of a key": {PerKey: 1000}, "10,000 of a key": {PerKey: 10_000},
		"100,000/s of a key":   {KeyRateLimit: 100_000, KeyRatePer: time.Second},
		"1,000,000/s of a key": {KeyRateLimit: 1_000_000, KeyRatePer: time.Second, KeyRateBurst: 1},
		"both":                 {PerKey: 10_000, KeyRateLimit: 100_000, KeyRatePer: time.Second, KeyRateBurst: 1000},
	} {
		f.on(name).quickBacklog(t, name, flow)
	}
	f.on("keys").quickKeys(t)
}

// quickBacklog handles a backlog of timers of one key.
func (f *fixture) quickBacklog(t *testing.T, name string, flow exchange.Flow) {
	t.Helper()
	const most = 500
	backlog := 4_000
	if *measureSlow {
		backlog = 20_000
	}
	f.scheduleMany(t, "timer", backlog, func(int) string { return "k" })
	run := func(settle ...exchange.Settlement) (leases []exchange.Lease) {
		f.requireQuick(t, name, func(int) error {
			r := f.Request(most, time.Minute)
			r.Flow, r.Settle = flow, settle
			reply, err := f.src.Exchange(t.Context(), r)
			if err == nil {
				leases, settle = append(leases, reply.Leases...), nil
			}
			return err
		})
		return leases
	}
	var held []exchange.Lease
	for range backlog / 800 { // many hold the key then, if it lets them
		held = append(held, run()...)
	}
	for range 10 {
		n := min(most, len(held))
		settle := acks(held[:n])
		held = append(held[n:], run(settle...)...)
	}
	f.requireQuick(t, name+": sweep", func(int) error { return f.src.SweepKeys(t.Context(), flow) })
	f.requireQuick(t, name+": cancel those that run", func(int) error {
		var ids []string
		for n := min(most, len(held)); n > 0; n-- {
			ids, held = append(ids, held[0].ID), held[1:]
		}
		_, err := f.Cancel(t.Context(), f.topic, ids...)
		return err
	})
	f.requireQuick(t, name+": schedule", func(try int) error {
		_, err := f.Schedule(t.Context(), f.topic, batchOf("more", try, Entry{Key: "k", At: time.Unix(2, 0)})...)
		return err
	})
	f.requireQuick(t, name+": sweep without a limit", func(int) error { return f.src.SweepKeys(t.Context(), exchange.Flow{}) })
}

// TestExchangesShareWorkOfKeysWithManyHolders checks that an exchange claims fewer timers
// of keys whose many holders it has to read, and that the next ones go on at once.
func TestExchangesShareWorkOfKeysWithManyHolders(t *testing.T) {
	t.Parallel()
	const keys, each = 100, 40
	f := newFixture(t, redistest.Start(t).Client(t))
	f.scheduleMany(t, "timer", keys*each, func(i int) string { return fmt.Sprint("key ", i%keys) })
	flow := exchange.Flow{PerKey: 10_000, KeyRateLimit: 1_000_000, KeyRatePer: time.Second, KeyRateBurst: 1_000_000}
	claimed, fewest := 0, claimMost
	for claimed < keys*each {
		r := f.Request(500, time.Minute)
		r.Flow = flow
		reply := f.Run(t, r)
		require.NotEmpty(t, reply.Leases, "each exchange makes progress")
		claimed += len(reply.Leases)
		if claimed < keys*each { // the last one gets what is left
			fewest = min(fewest, len(reply.Leases))
			require.LessOrEqual(t, reply.Next, time.Millisecond, "the poller is to go on at once")
		}
	}
	require.Less(t, fewest, claimMost/2, "the work of a claim counts, not only its timers")
}

// quickKeys handles many keys with many timers each.
func (f *fixture) quickKeys(t *testing.T) {
	t.Helper()
	const keys = claimMost
	each := 20
	if *measureSlow {
		each = 200
	}
	f.scheduleMany(t, "timer", keys*each, func(i int) string { return fmt.Sprint("key ", i%keys) })
	limit := exchange.Flow{PerKey: 1}
	var held []exchange.Lease
	for parked := int64(0); parked < int64(keys*(each-1)); {
		r := f.Request(500, time.Minute)
		r.Flow = limit
		held = append(held, f.Run(t, r).Leases...)
		stats, err := f.Stats(t.Context(), f.topic)
		require.NoError(t, err)
		parked = stats.Parked
	}
	require.Len(t, held, keys)
	f.requireQuick(t, "many keys: pass them on", func(int) error {
		r := f.Request(500, time.Minute)
		r.Flow, r.Settle = limit, acks(held)
		reply, err := f.src.Exchange(t.Context(), r)
		held = reply.Leases
		return err
	})
	f.requireQuick(t, "many keys: sweep", func(int) error { return f.src.SweepKeys(t.Context(), limit) })
	f.requireQuick(t, "many keys: cancel those that run", func(int) error {
		var ids []string
		for _, l := range held {
			ids = append(ids, l.ID)
		}
		_, err := f.Cancel(t.Context(), f.topic, ids...)
		r := f.Request(500, time.Minute)
		r.Flow = limit
		held = f.Run(t, r).Leases
		return err
	})
	f.requireQuick(t, "many keys: raise the limit", func(try int) error {
		limit.PerKey = 2 + 10*try
		return f.src.SweepKeys(t.Context(), limit)
	})
	f.requireQuick(t, "many keys: sweep without a limit", func(int) error { return f.src.SweepKeys(t.Context(), exchange.Flow{}) })
}
