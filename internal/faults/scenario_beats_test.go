package faults

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/recurring"
)

// shortBeats is how long a round kills beats, but for a first one that is told
// another time: the rounds of the other scenarios take about as long.
const shortBeats = 5 * time.Second

// beatLoad says what beats have to fire while they are killed.
type beatLoad struct {
	schedules int
	unit      time.Duration // the intervals are 1 to 10 of it
	pause     time.Duration // least time between kills; twice that at most
}

// loadOfBeats is that of a long run, or a light one for a few seconds.
func loadOfBeats(lasts time.Duration) beatLoad {
	if lasts >= time.Minute {
		return beatLoad{1000, time.Second, 3 * time.Second}
	}
	return beatLoad{100, 200 * time.Millisecond, 600 * time.Millisecond}
}

// beats kills one of three `wakebell beat` after another, by which many
// schedules are fired. Each of their instants has to have its timer, once.
func beats(w *world) {
	w.redis()
	lasts := shortBeats
	if w.round == 1 {
		lasts = *beatsFor
	}
	load := loadOfBeats(lasts)
	account := w.recur(load, "")
	flock := newFlock(w, account)
	for range 3 {
		flock.start()
	}
	w.eventually("all beats fire", flock.fires)
	probed := w.probe(account)
	for began := time.Now(); time.Since(began) < lasts; {
		w.pause(between(w.rng, load.pause, 2*load.pause))
		flock.kill(w.rng.IntN(len(flock.beats)))
		w.trials++
	}
	end := time.Now()
	w.eventually("every schedule goes on", func() bool { return account.past(end) })
	probed()
	flock.end()
	w.readRuns(account, "")
	w.found = account.judge()
	for _, note := range account.notes() {
		report.Note("beats", "%s", note)
	}
}

// allMisfires is as many as a beat may make up for: on a busy machine it may take
// the first of them half a minute to start.
const allMisfires = 10_000

// startIn is the least time between the put of a schedule and its first instant.
const startIn = 2 * time.Second

// recur puts the schedules, which are spread evenly over their intervals.
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

// tenant is a client of a prefix.
func (w *world) tenant(prefix string) *wakebell.Client {
	w.Helper()
	client, err := wakebell.NewClient(w.rdb, wakebell.ClientConfig{Prefix: prefix})
	require.NoError(w, err)
	return client
}

// readRuns reads the timers that the runs have become, and how many runs the
// schedules count.
func (w *world) readRuns(account *runAccount, prefix string) {
	w.Helper()
	ids, err := w.rdb.ZRange(w.Context(), "timers_timeline:"+prefix+topic, 0, -1).Result()
	require.NoError(w, err)
	for _, id := range ids {
		require.NoError(w, account.timer(strings.TrimPrefix(id, prefix)))
	}
	for state, err := range w.tenant(prefix).Schedules().List(w.Context()) {
		require.NoError(w, err)
		account.counted(state.Name, state.Runs)
	}
}

// probeEvery is how often the probe is due.
const probeEvery = 10 * time.Millisecond

// probe waits for one instant after another, as a beat does, and asks Redis for
// its clock then: that late the machine makes whoever does nothing else.
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
