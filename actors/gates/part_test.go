package gates

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/messages/gate"
)

// dividedStore has two parts: that of the gates whose names begin with "far" is down
// while down is set, and its clock is an hour ahead.
type dividedStore struct {
	actortest.OpenGate
	mu    sync.Mutex
	down  bool
	beats map[int]int
	mixed []string // gates of another part in a call
}

func (s *dividedStore) Part(name string) int {
	if strings.HasPrefix(name, "far") {
		return 1
	}
	return 0
}

func (s *dividedStore) unavailable(part int) error {
	if part == 1 && s.down {
		return fmt.Errorf("part 1: %w", exchange.ErrUnavailable)
	}
	return nil
}

func (s *dividedStore) clock(part int) time.Time {
	return time.Now().Add(time.Duration(part) * time.Hour)
}

func (s *dividedStore) Exchange(ctx context.Context, r *gate.Request) (*gate.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.unavailable(s.Part(r.Gate)); err != nil {
		return nil, err
	}
	reply, err := s.OpenGate.Exchange(ctx, r)
	reply.Now = s.clock(s.Part(r.Gate))
	return reply, err
}

func (s *dividedStore) Heartbeat(_ context.Context, b *gate.Heartbeat) (*gate.HeartbeatReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.unavailable(b.Part); err != nil {
		return nil, err
	}
	s.beats[b.Part]++
	for _, turn := range b.Turns {
		if s.Part(turn.Gate) != b.Part {
			s.mixed = append(s.mixed, turn.Gate)
		}
	}
	return &gate.HeartbeatReply{Now: s.clock(b.Part), Lost: make([]bool, len(b.Turns))}, nil
}

// beaten returns how many heartbeats of a part have arrived.
func (s *dividedStore) beaten(part int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.beats[part]
}

func (s *dividedStore) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// A part that is unavailable ends the turns of its own gates alone, and each part has a
// heartbeat for as long as the process uses gates of it.
func TestPartsFailAlone(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		store := &dividedStore{OpenGate: actortest.OpenGate{Processes: map[string]bool{}}, beats: map[int]int{}}
		g, err := Start(actortest.QuietSystem(), "gates", Config{
			Store: store, Terms: gate.Terms{Lease: 10 * time.Second, Signal: time.Second, Presence: 2 * time.Second},
			Logger: actortest.DiscardLogger, Process: func() string { return "process" },
		})
		require.NoError(t, err)
		near, err := g.Acquire(t.Context(), "near", false)
		require.NoError(t, err)
		far, err := g.Acquire(t.Context(), "far", false)
		require.NoError(t, err)
		<-time.After(time.Minute)
		require.NoError(t, near.Context().Err())
		require.NoError(t, far.Context().Err())
		require.InDelta(t, store.beaten(0), store.beaten(1), 20, "half a second between them")

		store.setDown(true)
		<-time.After(time.Minute)
		require.NoError(t, near.Context().Err())
		require.ErrorIs(t, context.Cause(far.Context()), ErrTurnLost)
		_, err = g.Acquire(t.Context(), "far-too", false)
		require.ErrorIs(t, err, exchange.ErrUnavailable)
		other, err := g.Acquire(t.Context(), "near-too", false)
		require.NoError(t, err)

		store.setDown(false)
		<-time.After(time.Minute)
		back, err := g.Acquire(t.Context(), "far", false)
		require.NoError(t, err)
		for _, turn := range []*Turn{near, other, back} {
			require.NoError(t, turn.Release(t.Context()))
		}
		<-time.After(time.Minute)
		before := store.beaten(0) + store.beaten(1)
		<-time.After(time.Minute)
		require.Equal(t, before, store.beaten(0)+store.beaten(1), "no gate is in use")
		require.Empty(t, store.mixed)
		require.NoError(t, g.Close())
	})
}

// A gate that cannot be used is logged at most ten times a minute, however often it is asked for.
func TestUnusableGateIsLoggedRarely(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		var log strings.Builder
		g, err := Start(actortest.QuietSystem(), "gates", Config{
			Store: unusableStore{&actortest.OpenGate{}}, Terms: gate.Terms{Lease: 10 * time.Second, Signal: time.Second, Presence: 2 * time.Second},
			Logger: slog.New(slog.NewTextHandler(&log, nil)), Process: func() string { return "process" },
		})
		require.NoError(t, err)
		for range 100 {
			_, err := g.Acquire(t.Context(), "broken", false)
			require.ErrorContains(t, err, "wrong type")
		}
		<-time.After(time.Minute)
		_, err = g.Acquire(t.Context(), "broken", false)
		require.Error(t, err)
		require.NoError(t, g.Close())
		require.Equal(t, 11, strings.Count(log.String(), "gate not usable"))
		require.Contains(t, log.String(), "skipped=90")
	})
}

// unusableStore has gates whose keys are of another type.
type unusableStore struct{ *actortest.OpenGate }

func (unusableStore) Exchange(context.Context, *gate.Request) (*gate.Reply, error) {
	return nil, errors.New("wrong type")
}

// A request that is sent again when its part answers after an outage does not look as if the
// clock of the part had stepped back.
func TestOutageIsNoStepOfClock(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		var log strings.Builder
		store := &dividedStore{OpenGate: actortest.OpenGate{Processes: map[string]bool{}}, beats: map[int]int{}}
		g, err := Start(actortest.QuietSystem(), "gates", Config{
			Store: store, Terms: gate.Terms{Lease: 10 * time.Second, Signal: time.Second, Presence: 2 * time.Second},
			Logger: slog.New(slog.NewTextHandler(&log, nil)), Process: func() string { return "process" },
		})
		require.NoError(t, err)
		turn, err := g.Acquire(t.Context(), "far", false)
		require.NoError(t, err)
		other, err := g.Acquire(t.Context(), "far-too", false)
		require.NoError(t, err)
		<-time.After(time.Second)
		store.setDown(true)
		released := make(chan error, 1)
		go func() { released <- other.Release(context.WithoutCancel(t.Context())) }()
		<-time.After(5 * time.Second)
		store.setDown(false)
		require.NoError(t, <-released)
		<-time.After(10 * time.Second)
		require.NoError(t, turn.Context().Err())
		require.NoError(t, turn.Release(t.Context()))
		require.NoError(t, g.Close())
		require.Contains(t, log.String(), "redis does not answer")
		require.NotContains(t, log.String(), "clock")
	})
}
