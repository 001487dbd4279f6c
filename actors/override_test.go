package actors

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/messages/exchange"
)

// withOverrides is a topic whose reads of the override return these errors one
// after the other. The last one repeats.
func withOverrides(s *actortest.MemorySource, read ...error) poller.Topic {
	topic := topicOn(s, 1, acks)
	topic.ReadOverride = func(context.Context) (poller.ClusterOverride, error) {
		err := read[0]
		if len(read) > 1 {
			read = read[1:]
		}
		return poller.ClusterOverride{}, err
	}
	return topic
}

func TestNothingIsClaimedBeforeOverrideIsRead(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		s := actortest.NewMemorySource(3)
		down := fmt.Errorf("as the test wants it: %w", exchange.ErrUnavailable)
		rt := start(t, actortest.QuietSystem(), "a", withOverrides(s, down, down, nil))
		<-time.After(500 * time.Millisecond)
		due, _, _, _ := s.Count()
		require.Equal(t, 3, due, "the topic may be paused")
		<-time.After(time.Minute)
		_, _, settled, _ := s.Count()
		require.Equal(t, 3, settled)
		require.NoError(t, rt.Stop())
	})
}

func TestUnreadableOverrideIsIgnored(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		s := actortest.NewMemorySource(3)
		rt := start(t, actortest.QuietSystem(), "a", withOverrides(s, errors.New("mangled by hand")))
		<-time.After(10 * time.Second)
		_, _, settled, _ := s.Count()
		require.Equal(t, 3, settled)
		require.NoError(t, rt.Stop())
	})
}

// TestNothingIsClaimedWhileChangedOverrideIsRead checks that a timer scheduled
// right after a pause is not claimed before the poller has read the pause. Its hint
// may arrive together with that of the pause.
func TestNothingIsClaimedWhileChangedOverrideIsRead(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		s, overrides := actortest.NewMemorySource(0), []poller.ClusterOverride{{}, {Paused: true}, {}}
		topic := topicOn(s, 1, acks)
		// No regular poll may be in flight when the pause comes.
		topic.PollingInterval, topic.MaxPollingInterval = time.Hour, time.Hour
		topic.OverrideInterval = 24 * time.Hour
		topic.ReadOverride = func(context.Context) (poller.ClusterOverride, error) {
			<-time.After(time.Minute)
			next := overrides[0]
			overrides = overrides[1:]
			return next, nil
		}
		rt := start(t, actortest.QuietSystem(), "a", topic)
		hint := func(kind exchange.HintKind) {
			rt.system.Root.Send(rt.PID(), exchange.Hint{Source: "shelf", Kind: kind})
		}
		claimed := func() int {
			_, _, settled, _ := s.Count()
			return settled
		}
		<-time.After(2 * time.Minute)
		s.Put("before the pause")
		hint(exchange.HintDue)
		<-time.After(time.Second)
		require.Equal(t, 1, claimed())

		hint(exchange.HintControl)
		s.Put("after the pause")
		hint(exchange.HintDue)
		<-time.After(3 * time.Minute)
		require.Equal(t, 1, claimed())
		hint(exchange.HintControl)
		<-time.After(61 * time.Second)
		require.Equal(t, 2, claimed(), "the topic is resumed")
		require.NoError(t, rt.Stop())
	})
}

// A node that receives no hints sees in the answer to an exchange that the settings have
// changed. That exchange claims nothing, and the override is read once for each change.
func TestChangedMarkIsAsGoodAsHint(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		s := actortest.NewMemorySource(0)
		var override atomic.Pointer[poller.ClusterOverride]
		var reads atomic.Int64
		set := func(paused bool, mark string) {
			override.Store(&poller.ClusterOverride{Paused: paused, Mark: mark})
			s.SetControl(mark)
		}
		set(false, "none")
		topic := topicOn(s, 1, acks)
		topic.OverrideInterval = 1000 * time.Hour
		topic.ReadOverride = func(context.Context) (poller.ClusterOverride, error) {
			reads.Add(1)
			return *override.Load(), nil
		}
		rt := start(t, actortest.QuietSystem(), "a", topic)
		claimed := func() int {
			_, _, settled, _ := s.Count()
			return settled
		}
		s.Put("before the pause")
		<-time.After(time.Minute)
		require.Equal(t, 1, claimed())
		require.EqualValues(t, 1, reads.Load(), "the settings have not changed")

		set(true, "paused")
		s.Put("after the pause")
		<-time.After(time.Hour)
		require.Equal(t, 1, claimed())
		require.EqualValues(t, 2, reads.Load())

		set(false, "none")
		<-time.After(time.Minute)
		require.Equal(t, 2, claimed(), "a paused poller asks, too")
		require.EqualValues(t, 3, reads.Load())

		set(false, "tuned")
		override.Store(&poller.ClusterOverride{Mark: "of a reading that is not up to date"})
		s.Put("after the change")
		<-time.After(time.Minute)
		require.Equal(t, 3, claimed(), "a mark that is never read does not stop the topic")
		require.EqualValues(t, 4, reads.Load())
		require.NoError(t, rt.Stop())
	})
}

// Limits by key that an override turns on are looked after as often as those of the
// handler: the read of the override also sweeps keys.
func TestLimitByKeyOfOverrideShortensIntervalOfReads(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		var reads atomic.Int64
		var keyed atomic.Bool
		topic := topicOn(actortest.NewMemorySource(0), 1, acks)
		topic.ReadOverride = func(context.Context) (poller.ClusterOverride, error) {
			reads.Add(1)
			limits := keyed.Load()
			return poller.ClusterOverride{Apply: func(s *poller.Settings) {
				if limits {
					s.Flow.PerKey = 1
				}
			}}, nil
		}
		rt := start(t, actortest.QuietSystem(), "a", topic)
		within := func(d time.Duration) int64 {
			before := reads.Load()
			<-time.After(d)
			return reads.Load() - before
		}
		require.LessOrEqual(t, within(time.Hour), int64(60/2), "5 min with a jitter of a half")

		keyed.Store(true)
		rt.system.Root.Send(rt.PID(), exchange.Hint{Source: "shelf", Kind: exchange.HintControl})
		<-time.After(time.Second)
		require.GreaterOrEqual(t, within(91*time.Second), int64(1), "1 min with a jitter of a half")
		require.GreaterOrEqual(t, within(time.Hour), int64(60*2/3))

		keyed.Store(false)
		<-time.After(10 * time.Minute)
		require.LessOrEqual(t, within(time.Hour), int64(60/2))
		require.NoError(t, rt.Stop())
	})
}

// A pause that ends by itself is read again at its end, and no sooner.
func TestPollerReadsOverrideAtEndOfPause(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		began := time.Now()
		s := actortest.NewMemorySource(0)
		var reads []time.Duration
		topic := topicOn(s, 1, acks)
		topic.OverrideInterval = 1000 * time.Hour
		topic.ReadOverride = func(context.Context) (poller.ClusterOverride, error) {
			reads = append(reads, time.Since(began))
			left := 2*time.Hour - time.Since(began)
			return poller.ClusterOverride{Paused: left > 0, PausedFor: left}, nil
		}
		rt := start(t, actortest.QuietSystem(), "a", topic)
		s.Put("x")
		claimed := func() int {
			_, _, settled, _ := s.Count()
			return settled
		}
		<-time.After(2*time.Hour - time.Second)
		require.Zero(t, claimed())
		<-time.After(2 * time.Second)
		require.Equal(t, 1, claimed())
		require.Equal(t, []time.Duration{0, 2 * time.Hour}, reads)
		require.NoError(t, rt.Stop())
	})
}
