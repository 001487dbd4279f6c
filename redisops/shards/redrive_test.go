package shards

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestRedriveForgetsThatItHasSkipped redrives a dead letter that an earlier redrive has left,
// while timers move: that answer is stored for a day, and is not the answer to this one.
func TestRedriveForgetsThatItHasSkipped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		overwrite bool
		want      wakebelltype.RedriveResult
	}{
		"what was in the way is gone":       {false, wakebelltype.RedriveResult{Redriven: 1}},
		"what is in the way is overwritten": {true, wakebelltype.RedriveResult{Overwritten: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
			f.schedule(t, timers.Entry{ID: "a"})
			f.deadLetterAll(t)
			f.schedule(t, timers.Entry{ID: "a", In: time.Hour})
			f.startMoving(t, 4)
			redrive := func(overwrite bool) wakebelltype.RedriveResult {
				done, err := f.Redrive(t.Context(), f.topic, wakebelltype.RedriveOptions{In: time.Hour, Overwrite: overwrite})
				require.NoError(t, err)
				return done
			}
			for range 2 {
				require.Equal(t, wakebelltype.RedriveResult{SkippedLive: 1}, redrive(false))
			}
			if !c.overwrite {
				_, err := f.Cancel(t.Context(), f.topic, "a")
				require.NoError(t, err)
			}
			require.Equal(t, c.want, redrive(c.overwrite))
			require.Zero(t, redrive(false), "no dead letter is left")
			require.Equal(t, []string{"a"}, f.in(t, f.names(t)))
		})
	}
}

// The rate of a redrive is that of the topic, also where each shard has few dead letters.
func TestRedriveKeepsItsRateOverShards(t *testing.T) {
	t.Parallel()
	for _, count := range []int{1, 64} {
		t.Run(fmt.Sprintf("%d shards", count), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rdb, _ := redistest.Embedded(t)
				f := newFixture(t, rdb, wakebelltype.Keys{}, count)
				all := numbered(190)
				for i := range all {
					all[i].At = time.Now()
				}
				f.schedule(t, all...)
				f.deadLetterAll(t)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				done, err := f.Redrive(ctx, f.topic, wakebelltype.RedriveOptions{Rate: 100})
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.InDelta(t, 100, done.Redriven, 10, "a page more or less") // in a second of virtual time
			})
		})
	}
}

// Filters by age go by when dead letters died, also after these were moved or imported.
func TestAgeOfDeadLettersThatMovedIsThatOfTheirDeaths(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
	var letters []timers.DeadLetter
	for i := range 20 {
		letters = append(letters, timers.DeadLetter{ID: fmt.Sprintf("old%d", i), Reason: "r", Payload: []byte("p"), Activation: time.Now(), At: time.Now().Add(-time.Hour)})
	}
	require.NoError(t, f.PutDead(t.Context(), f.topic, letters))
	f.schedule(t, timers.Entry{ID: "new"})
	f.deadLetterAll(t)
	check := func() {
		t.Helper()
		for _, c := range []struct {
			wakebelltype.DeadFilter
			want int
		}{{wakebelltype.DeadFilter{OlderThan: 30 * time.Minute}, 20}, {wakebelltype.DeadFilter{NewerThan: 30 * time.Minute}, 1}} {
			found, _, err := f.DeadLetters(t.Context(), f.topic, c.DeadFilter, "", 0)
			require.NoError(t, err)
			require.Len(t, found, c.want)
		}
	}
	check()
	f.moveAll(t, f.startMoving(t, 4))
	check()
	done, err := f.Redrive(t.Context(), f.topic, wakebelltype.RedriveOptions{Filter: wakebelltype.DeadFilter{NewerThan: 30 * time.Minute}})
	require.NoError(t, err)
	require.EqualValues(t, 1, done.Redriven)
}
