package shards

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/wakebell/wakebell/wakebelltype"
)

// Tail watches the events of a topic on all nodes; see [timers.Timers.Tail]. When the
// layout of the topic changes, it watches the new shards as well.
func (s *Store) Tail(ctx context.Context, topic string, yield func(wakebelltype.Event) bool) error {
	for {
		names, err := s.all(ctx, topic)
		if err != nil {
			return err
		}
		inner, cancel := context.WithCancelCause(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.awaitOther(inner, cancel, topic, names)
		}()
		err = s.timers.TailAll(inner, topic, names, yield)
		changed := errors.Is(context.Cause(inner), errChanged)
		cancel(nil)
		<-ended
		if !changed || ctx.Err() != nil {
			return err
		}
	}
}

// awaitOther cancels a tail when the topic has other physical topics.
func (s *Store) awaitOther(ctx context.Context, cancel context.CancelCauseFunc, topic string, names []string) {
	tick := time.NewTicker(Fresh)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if now, err := s.all(ctx, topic); err == nil && !slices.Equal(now, names) {
				cancel(errChanged)
				return
			}
		}
	}
}

// errChanged is the cause of the end of a tail whose topic has other shards.
var errChanged = errors.New("the layout of the topic has changed")
