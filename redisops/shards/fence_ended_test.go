package shards

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestReshardingThatHasEndedRefusesNothing has a process repair and import that has read the
// map while timers moved, which another process has brought to an end.
func TestReshardingThatHasEndedRefusesNothing(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(s *Store, topic string) error{
		"repair": func(s *Store, topic string) error {
			_, err := s.Repair(t.Context(), topic, wakebelltype.RepairOptions{Apply: true})
			return err
		},
		"import": func(s *Store, topic string) error {
			_, err := s.Put(t.Context(), topic, timers.PutKeep, []timers.Stored{{ID: "a", At: hour, Due: hour, Payload: []byte("b")}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, f *fixture) {
				moving := f.startMoving(t, 3)
				stopped := f.stopped(t)
				require.ErrorIs(t, call(stopped(), f.topic), wakebelltype.ErrInvalid, "while they move")
				f.moveAll(t, moving)
				_, err := f.layouts.change(t.Context(), f.topic, func(l sharding.Layout) (sharding.Layout, error) { return l.Settled(time.Now()), nil })
				require.NoError(t, err)
				require.NoError(t, call(stopped(), f.topic))
			})
		})
	}
}
