//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Three beat processes, one of which is killed again and again: each schedule
// has one timer for each of its instants, none missing and none twice.
func TestBeatsAreKilled(t *testing.T) {
	b := setup(t)
	path := binary(t)
	const schedules = 60
	every := func(i int) time.Duration { return 500*time.Millisecond + time.Duration(i%10)*100*time.Millisecond }
	for i := range schedules {
		b.fine(b.keyed("schedules", "put", fmt.Sprintf("s%02d", i), "-t", "TOPIC",
			"--every", every(i).String(), "--misfire", "all")...)
	}
	start := func() (*exec.Cmd, *running) {
		return b.process(path, nil, b.keyed("beat", "--log-level", "error")...)
	}
	beats := make([]*exec.Cmd, 3)
	var all []*running
	for i := range beats {
		cmd, r := start()
		beats[i], all = cmd, append(all, r)
	}
	rounds := 5
	if testing.Short() {
		rounds = 2
	}
	for range rounds {
		<-time.After(1200 * time.Millisecond)
		i := rand.IntN(len(beats))
		require.NoError(t, beats[i].Process.Kill())
		cmd, r := start()
		beats[i], all = cmd, append(all, r)
	}
	all[0].eventually(func() bool { // those that run fire every schedule
		return b.rdb.ZCard(t.Context(), "timers_timeline:"+b.topic).Val() > 6*schedules
	})
	for _, cmd := range beats {
		require.NoError(t, cmd.Process.Kill())
	}
	for _, r := range all {
		r.wait()
	}
	b.checkRuns(schedules, every)
	b.checkLines(all)
}

// checkRuns compares the timers of each schedule with its instants, and with the
// runs that its meta counts.
func (b *bundle) checkRuns(schedules int, every func(int) time.Duration) {
	b.t.Helper()
	ids := b.rdb.ZRange(b.t.Context(), "timers_timeline:"+b.topic, 0, -1).Val()
	due := map[string][]time.Time{}
	for _, id := range ids {
		name, at, _ := strings.Cut(id, "@")
		instant, err := time.Parse(time.RFC3339Nano, at)
		require.NoError(b.t, err)
		due[name] = append(due[name], instant)
	}
	for i := range schedules {
		name := fmt.Sprintf("s%02d", i)
		require.NotEmpty(b.t, due[name], name)
		slices.SortFunc(due[name], time.Time.Compare)
		for n, at := range due[name][1:] {
			require.Equal(b.t, every(i), at.Sub(due[name][n]), "%s: an instant is missing", name)
		}
		var meta struct {
			Runs int `json:"total_run_count"`
		}
		raw := b.rdb.HGet(b.t.Context(), b.topic+":"+name, "meta").Val()
		require.NoError(b.t, json.Unmarshal([]byte(raw), &meta))
		require.Len(b.t, due[name], meta.Runs, "%s: a run was fired twice", name)
	}
}

// checkLines looks at what the beats printed: no run twice, none early. A
// process that was killed may not have printed its last.
func (b *bundle) checkLines(all []*running) {
	b.t.Helper()
	seen := map[string]bool{}
	for _, r := range all {
		for line := range strings.Lines(r.out.String()) {
			var fired struct {
				Name    string
				Due     time.Time
				FiredAt time.Time `json:"fired_at"`
				Run     int
			}
			if !strings.HasSuffix(line, "\n") {
				continue
			}
			require.NoError(b.t, json.Unmarshal([]byte(line), &fired))
			run := fmt.Sprint(fired.Name, fired.Run)
			require.False(b.t, seen[run], "run %d of %s was fired twice", fired.Run, fired.Name)
			require.False(b.t, fired.FiredAt.Before(fired.Due), "%s was early", fired.Name)
			seen[run] = true
		}
	}
	require.NotEmpty(b.t, seen)
}
