package relay

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/messages"
)

// A topic that Redis does not answer for, as when its master of a Cluster is away, does
// not hold up others, also when the oldest rows are of that topic alone.
func TestOutageOfTopicParksIt(t *testing.T) {
	var rows []string
	for stream := range 10 {
		rows = append(rows, fmt.Sprintf("%c0", 'a'+stream), fmt.Sprintf("%c1", 'a'+stream))
	}
	relaying(t, func(row string) messages.Answer {
		if laneOf(row[0]) == 1 {
			return refuse(messages.Code_CODE_UNAVAILABLE)
		}
		return done(row)
	}, rows, func(t *testing.T, m *memory, g *gateway, r *Relay) {
		m.mu.Lock()
		require.Equal(t, rows, m.parked)
		m.rows = append(m.rows, "n0", "a2")
		m.mu.Unlock()
		r.Wake()
		synctest.Wait()
		require.Contains(t, g.received(), "n0")
		require.NotContains(t, m.left(), "n0")
		require.EqualValues(t, 1, r.Counts().Relayed)
	})
}

// A timer whose join is not there does not hold up its topic, also if it is alone in a batch, or
// beside rows that are refused for another reason.
func TestMissingJoinParksNothing(t *testing.T) {
	relaying(t, func(row string) messages.Answer {
		switch row[0] {
		case 'a', 'n':
			return refuse(messages.Code_CODE_NOT_FOUND)
		default:
			return refuse(messages.Code_CODE_WRONG_TYPE)
		}
	}, []string{"a0", "a1", "n0", "o0"}, func(t *testing.T, m *memory, _ *gateway, r *Relay) {
		m.mu.Lock()
		defer m.mu.Unlock()
		require.Equal(t, []string{"o0"}, m.parked)
		require.Equal(t, map[string]bool{"a0": true, "a1": true, "n0": true, "o0": true}, m.waiting)
		require.EqualValues(t, 3, r.Counts().Deferred)
	})
}

// A queue is refused as a whole, although it took rows before.
func TestFullQueueIsParked(t *testing.T) {
	relaying(t, func(row string) messages.Answer {
		if row == "Q1" {
			return refuse(messages.Code_CODE_WRONG_TYPE)
		}
		return done(row)
	}, []string{"Q0", "Q1", "Q2", "a0"}, func(t *testing.T, m *memory, g *gateway, r *Relay) {
		m.mu.Lock()
		require.Equal(t, []string{"Q1", "Q2"}, m.parked)
		m.mu.Unlock()
		require.ElementsMatch(t, []string{"Q0", "Q1", "a0"}, g.received())
		require.Equal(t, Counts{Relayed: 2, Deferred: 1}, r.Counts())
	})
}

// Requests without an answer hold up a batch for a second if others of it were relayed,
// not for the whole timeout.
func TestBatchDoesNotWaitForSlowTopic(t *testing.T) {
	relaying(t, func(row string) messages.Answer {
		if laneOf(row[0]) == 1 {
			return nil
		}
		return done(row)
	}, []string{"a0", "b0", "n0"}, func(t *testing.T, m *memory, _ *gateway, _ *Relay) {
		<-time.After(restWait)
		synctest.Wait()
		require.Equal(t, []string{"a0", "b0"}, m.left())
		m.mu.Lock()
		defer m.mu.Unlock()
		require.Equal(t, []string{"a0", "b0"}, m.parked)
	})
}

// Rows of parked lanes are claimed by an actor of their own: while it waits for answers,
// other rows are relayed.
func TestParkedLanesDoNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		system := actortest.QuietSystem()
		g := &gateway{answer: func(row string) messages.Answer {
			if row[0] == 'a' {
				return nil
			}
			return done(row)
		}}
		pid, err := system.Root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor { return g }), "gateway")
		require.NoError(t, err)
		waiting, tried := &memory{waiting: map[string]bool{}}, &memory{rows: []string{"a0"}, waiting: map[string]bool{}}
		r, err := Start(system, Config{
			Name: "relay", Ready: waiting, Parked: tried, Gateway: pid,
			PollInterval: time.Minute, MeasureInterval: time.Minute, Timeout: 10 * time.Second, Logger: actortest.DiscardLogger,
		})
		require.NoError(t, err)
		synctest.Wait()
		waiting.mu.Lock()
		waiting.rows = []string{"n0"}
		waiting.mu.Unlock()
		r.Wake()
		synctest.Wait()
		require.Empty(t, waiting.left())
		require.Equal(t, []string{"a0"}, tried.left())
		require.NoError(t, r.Stop(t.Context()))
		require.NoError(t, system.Root.StopFuture(pid).Wait())
	})
}
