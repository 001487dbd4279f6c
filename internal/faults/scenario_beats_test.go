package faults

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

// shortBeats is how long a round kills beats, which is similar to the other
// scenarios. The flag -faults.beats sets another duration for the first round.
const shortBeats = 5 * time.Second

// beatLoad configures the schedules of a round.
type beatLoad struct {
	schedules int
	unit      time.Duration // the intervals are 1 to 10 times that
	pause     time.Duration // minimum time between kills; the maximum is twice that
}

// loadOfBeats returns the load of a long run, or a light one for a few seconds.
func loadOfBeats(lasts time.Duration) beatLoad {
	if lasts >= time.Minute {
		return beatLoad{1000, time.Second, 3 * time.Second}
	}
	return beatLoad{100, 200 * time.Millisecond, 600 * time.Millisecond}
}

// beats kills three `wakebell beat` processes one after another while they fire many
// schedules. Each instant must have exactly one timer.
func beats(w *world) {
	w.redis()
	lasts := shortBeats
	if w.round == 1 {
		lasts = *beatsFor
	}
	load := loadOfBeats(lasts)
	account := w.recur(load, "")
	fleet := newBeatFleet(w, account)
	for range 3 {
		fleet.start()
	}
	w.eventually("all beats fire", fleet.fires)
	probed := w.probe(account)
	for began := time.Now(); time.Since(began) < lasts; {
		w.pause(between(w.rng, load.pause, 2*load.pause))
		fleet.kill(w.rng.IntN(len(fleet.beats)))
		w.tried()
	}
	end := time.Now()
	w.eventually("every schedule continues", func() bool { return account.past(end) })
	probed()
	fleet.end()
	w.readRuns(account, "")
	w.found = account.judge()
	for _, note := range account.notes() {
		report.Note("beats", "%s", note)
	}
}

// allMisfires is the misfire limit: on a busy machine the first beat may take half a
// minute to start.
const allMisfires = 10_000

// startIn is the minimum time from storing a schedule to its first instant.
const startIn = 2 * time.Second

// recur stores the schedules, whose phases are random.
func (w *world) recur(load beatLoad, prefix string) *runAccount {
	w.Helper()
	account := newRunAccount()
	client := w.tenant(prefix)
	for i := range load.schedules {
		every := load.unit * time.Duration(1+i%10)
		start := time.Now().Add(startIn + between(w.rng, 0, every)).Truncate(time.Millisecond)
		name := fmt.Sprintf("schedule-%d", i)
		account.expect(name, start, every)
		require.NoError(w, client.Schedules().Put(w.Context(), wakebell.NewTopic[Work](topic).Recurring(name,
			recurring.Rule{Every: every, Start: start, Misfire: recurring.MisfireAll, MisfireLimit: allMisfires}, Work{})))
	}
	return account
}

// tenant returns a client with a prefix.
func (w *world) tenant(prefix string) *wakebell.Client {
	w.Helper()
	client, err := wakebell.NewClient(conntest.New(w, w.rdb, connection.Config{Prefix: prefix}))
	require.NoError(w, err)
	return client
}

// readRuns reads the timers of the runs, and the number of runs that the schedules
// count.
func (w *world) readRuns(account *runAccount, prefix string) {
	w.Helper()
	ids, err := w.rdb.ZRange(w.Context(), "timers_timeline:"+prefix+topic, 0, -1).Result()
	require.NoError(w, err)
	for _, id := range ids {
		require.NoError(w, account.timer(strings.TrimPrefix(id, prefix)))
	}
	for state, err := range w.tenant(prefix).Schedules().List(w.Context(), wakebelltype.Page{}) {
		require.NoError(w, err)
		account.counted(state.Name, state.Runs)
	}
}

// probeEvery is the interval of the probe.
const probeEvery = 10 * time.Millisecond

// probe waits for one instant after another, as a beat does, and then reads the clock
// of Redis. Its lateness is that of the machine.
func (w *world) probe(account *runAccount) (end func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			due := time.Now().Add(probeEvery)
			select {
			case <-time.After(probeEvery):
				if now, err := w.rdb.Time(w.Context()).Result(); err == nil { // else the round has failed
					account.probed(due, now)
				}
			case <-done:
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}
