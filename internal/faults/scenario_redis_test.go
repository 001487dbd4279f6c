package faults

import (
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
)

// restart kills and restarts a Redis that syncs every write to disk before it answers.
// It loses nothing.
func restart(w *world) {
	w.redis("--appendonly", "yes", "--appendfsync", "always")
	w.start(3, w.config())
	end := w.begin(w.usual())
	for range 4 {
		w.pause(between(w.rng, 300*time.Millisecond, time.Second))
		w.away(func() {
			w.server.Kill()
			w.pause(between(w.rng, 50*time.Millisecond, w.deliveries.TTL*3/2))
			w.server.Restart(w.T)
		})
	}
	end()
	w.settled(settleLimit)
}

// away records that Redis is away while cause runs, and counts a trial.
func (w *world) away(cause func()) {
	fault := Fault{Kind: Outage, From: time.Now()}
	cause()
	fault.To = time.Now()
	w.deliveries.RecordFault(fault)
	w.tried()
}

// postponed is how long Redis may delay writing acknowledged changes to its file
// while an fsync is running.
const postponed = 2 * time.Second

// powerCut kills a Redis that syncs its file once a second, and truncates the file by
// the last second, as a power failure does. The losses are counted separately.
func powerCut(w *world) {
	dir := w.TempDir()
	w.redis("--dir", dir, "--appendonly", "yes", "--appendfsync", "everysec")
	file := filepath.Join(dir, "appendonlydir", "appendonly.aof.1.incr.aof")
	w.start(3, w.config())
	end := w.begin(w.usual())
	for range 3 {
		sizes := w.follow(file)
		w.pause(between(w.rng, 1500*time.Millisecond, 2500*time.Millisecond))
		w.away(func() {
			cut := time.Now() // the machine may stall while the server is killed
			w.server.Kill()
			at, size := sizes(cut.Add(-time.Second))
			w.deliveries.RecordFault(Fault{Kind: DataLoss, From: at.Add(-postponed), To: time.Now()})
			require.NoError(w, os.Truncate(file, size))
			w.pause(between(w.rng, 50*time.Millisecond, w.deliveries.TTL))
			w.server.Restart(w.T)
		})
	}
	end()
	w.settled(settleLimit)
}

// follow records the size of a file over time. The returned function stops that, and
// returns the last size before an instant and when it was read.
func (w *world) follow(file string) func(before time.Time) (at time.Time, size int64) {
	type reading struct {
		at   time.Time
		size int64
	}
	var readings []reading
	read := func() {
		at := time.Now()
		info, err := os.Stat(file)
		if err == nil {
			readings = append(readings, reading{at, info.Size()})
		}
	}
	read()
	stop := make(chan struct{})
	var following sync.WaitGroup
	following.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				read()
			}
		}
	})
	w.Cleanup(following.Wait)
	end := sync.OnceFunc(func() { close(stop) })
	w.Cleanup(end)
	return func(before time.Time) (time.Time, int64) {
		end()
		following.Wait()
		last := readings[0]
		for _, r := range readings {
			if r.at.Before(before) {
				last = r
			}
		}
		return last.at, last.size
	}
}

// flush flushes the script cache of Redis continuously.
func flush(w *world) {
	w.redis()
	w.start(3, w.config())
	end := w.begin(w.usual())
	for range 100 {
		require.NoError(w, w.rdb.ScriptFlush(w.Context()).Err())
		w.tried()
		w.pause(between(w.rng, time.Millisecond, 60*time.Millisecond))
	}
	end()
	w.settled(settleLimit)
}

// full makes Redis run out of memory: stored timers must still be delivered and
// settled, also by pollers that were idle.
func full(w *world) {
	w.redis("--maxmemory-policy", "noeviction")
	w.start(3, w.config())
	l := w.usual()
	l.pause = 60 * time.Millisecond
	end := w.begin(l)
	for range 4 {
		w.pause(between(w.rng, 300*time.Millisecond, time.Second))
		fault := Fault{Kind: Full, From: time.Now()}
		require.NoError(w, w.rdb.ConfigSet(w.Context(), "maxmemory", "1").Err())
		w.tried()
		w.eventually("all timers are settled while memory is full", func() bool {
			return w.rdb.ZCard(w.Context(), "timers_timeline:"+topic).Val() == 0
		})
		w.pause(between(w.rng, 0, 500*time.Millisecond))
		require.NoError(w, w.rdb.ConfigSet(w.Context(), "maxmemory", "0").Err())
		fault.To = time.Now()
		w.deliveries.RecordFault(fault)
	}
	end()
	w.settled(settleLimit)
}
