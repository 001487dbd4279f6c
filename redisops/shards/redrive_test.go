package shards

import (
	"testing"
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
