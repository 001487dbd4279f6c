package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/messages"
)

// memory is a Store. Its rows are named by their stream and a number, as "a1". Streams a
// to m are timers of one topic, n to z of another; others are queues.
type memory struct {
	mu      sync.Mutex
	rows    []string
	waiting map[string]bool // deferred or blocked: not claimed again
	failed  []string
	parked  []string
	claims  []time.Time
	err     error // of claims
}

type memoryBatch struct {
	m    *memory
	rows []string
}

func (m *memory) Claim(context.Context) (Batch, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.claims = append(m.claims, time.Now())
	b := memoryBatch{m: m}
	for _, row := range m.rows {
		if !m.waiting[row] && len(b.rows) < 100 {
			b.rows = append(b.rows, row)
		}
	}
	return b, m.err
}

func (b memoryBatch) Items() (items []Item) {
	for _, row := range b.rows {
		item := Item{Stream: row[:1], Lane: laneOf(row[0]), Alone: row[0] < 'a', Request: &messages.CancelRequest{Topic: row}}
		if row[1:] == "?" {
			item.Request, item.Err = nil, errors.New("unreadable")
		}
		items = append(items, item)
	}
	return items
}

func laneOf(stream byte) int64 {
	switch {
	case stream < 'a':
		return int64(stream)
	case stream <= 'm':
		return 1
	default:
		return 2
	}
}

func (b memoryBatch) More() bool      { return false }
func (b memoryBatch) Contended() bool { return false }

func (b memoryBatch) Settle(_ context.Context, results []Result) error {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	for i, row := range b.rows {
		switch results[i].Verdict {
		case Relayed:
			b.m.remove(row)
		case Rejected:
			b.m.remove(row)
			b.m.failed = append(b.m.failed, row)
		case Deferred, Blocked:
			b.m.waiting[row] = true
		case Parked:
			b.m.waiting[row] = true
			b.m.parked = append(b.m.parked, row)
		case Left:
		}
	}
	return nil
}

func (m *memory) remove(row string) {
	m.rows = slices.DeleteFunc(m.rows, func(r string) bool { return r == row })
}

func (m *memory) left() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.rows)
}

// gateway is an actor that answers requests with what answer returns; nil: not at all.
type gateway struct {
	mu     sync.Mutex
	got    []string
	answer func(row string) messages.Answer
}

func (g *gateway) Receive(c actor.Context) {
	m, ok := c.Message().(*messages.CancelRequest)
	if !ok {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.got = append(g.got, m.GetTopic())
	switch answer := g.answer(m.GetTopic()).(type) {
	case *messages.Error:
		answer.Request = m.GetRequest()
		c.Respond(answer)
	case *messages.CancelResponse:
		answer.Request = m.GetRequest()
		c.Respond(answer)
	}
}

func (g *gateway) set(answer func(string) messages.Answer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answer = answer
}

func (g *gateway) received() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.got)
}

func done(string) messages.Answer { return &messages.CancelResponse{} }

func refuse(code messages.Code) messages.Answer { return messages.Failure(code, "no") }

// relaying runs test with a relay of these rows, in virtual time.
func relaying(t *testing.T, answer func(string) messages.Answer, rows []string, test func(*testing.T, *memory, *gateway, *Relay)) {
	t.Helper()
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		system := actortest.QuietSystem()
		m, g := &memory{rows: rows, waiting: map[string]bool{}}, &gateway{answer: answer}
		pid, err := system.Root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor { return g }), "gateway")
		require.NoError(t, err)
		r, err := Start(system, Config{
			Name: "relay", Ready: m, Gateway: pid,
			PollInterval: time.Minute, MeasureInterval: time.Minute, Timeout: 10 * time.Second, Logger: actortest.DiscardLogger,
		})
		require.NoError(t, err)
		synctest.Wait()
		test(t, m, g, r)
		require.NoError(t, r.Stop(t.Context()))
		require.NoError(t, system.Root.StopFuture(pid).Wait())
	})
}

func TestRowsOfStreamAreSentInOrder(t *testing.T) {
	var rows []string
	for n := range 9 {
		for stream := range 5 {
			rows = append(rows, fmt.Sprintf("%c%d", 'a'+stream, n))
		}
	}
	relaying(t, done, rows, func(t *testing.T, m *memory, g *gateway, r *Relay) {
		require.Empty(t, m.left())
		last := map[byte]byte{}
		for _, row := range g.received() {
			require.Greater(t, row[1], last[row[0]])
			last[row[0]] = row[1]
		}
		require.Equal(t, Counts{Relayed: 45}, r.Counts())
	})
}

func TestDeferredRowHoldsUpItsStreamAlone(t *testing.T) {
	relaying(t, func(row string) messages.Answer {
		if row == "a1" {
			return refuse(messages.Code_CODE_WRONG_TYPE)
		}
		return done(row)
	}, []string{"a0", "a1", "b0", "a2", "a3", "b1"}, func(t *testing.T, m *memory, g *gateway, r *Relay) {
		require.Equal(t, []string{"a1", "a2", "a3"}, m.left())
		require.NotContains(t, g.received(), "a2")
		require.Equal(t, Counts{Relayed: 3, Deferred: 1}, r.Counts())
		require.NoError(t, r.Err())
	})
}

func TestRejectedRowLetsItsStreamPass(t *testing.T) {
	relaying(t, func(row string) messages.Answer {
		if row == "a0" {
			return refuse(messages.Code_CODE_INVALID)
		}
		return done(row)
	}, []string{"a0", "a1", "b?", "b1"}, func(t *testing.T, m *memory, g *gateway, r *Relay) {
		require.Empty(t, m.left())
		m.mu.Lock()
		require.ElementsMatch(t, []string{"a0", "b?"}, m.failed)
		m.mu.Unlock()
		require.Equal(t, []string{"a0", "b1", "a1"}, g.received())
	})
}

// While the gateway takes no requests nothing is deferred, and claims have a growing
// delay.
func TestOutageIsRetriedWithBackoff(t *testing.T) {
	relaying(t, func(string) messages.Answer { return refuse(messages.Code_CODE_OVERLOADED) }, []string{"a0", "b0"},
		func(t *testing.T, m *memory, g *gateway, r *Relay) {
			require.ErrorContains(t, r.Err(), "OVERLOADED")
			<-time.After(time.Minute)
			synctest.Wait()
			require.Equal(t, []string{"a0", "b0"}, m.left())
			m.mu.Lock()
			require.Less(t, len(m.claims), 30)
			require.Greater(t, len(m.claims), 10)
			m.mu.Unlock()
			g.set(done)
			<-time.After(2 * maxRetry)
			synctest.Wait()
			require.Empty(t, m.left())
			require.NoError(t, r.Err())
			require.Equal(t, Counts{Relayed: 2}, r.Counts())
		})
}

// A row that alone is answered like an outage does not hold up the others.
func TestRowThatTimesOutIsDeferred(t *testing.T) {
	relaying(t, func(row string) messages.Answer {
		if row == "a0" {
			return nil
		}
		return done(row)
	}, []string{"a0", "a1", "b0"}, func(t *testing.T, m *memory, g *gateway, r *Relay) {
		<-time.After(12 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{"a0", "a1"}, m.left())
		require.Equal(t, Counts{Relayed: 1, Deferred: 1}, r.Counts())
		require.NotContains(t, g.received(), "a1")
	})
}

func TestFailingDatabaseIsRetried(t *testing.T) {
	relaying(t, done, nil, func(t *testing.T, m *memory, g *gateway, r *Relay) {
		m.mu.Lock()
		m.err, m.rows = errors.New("connection refused"), []string{"a0"}
		m.mu.Unlock()
		r.Wake()
		synctest.Wait()
		require.ErrorContains(t, r.Err(), "connection refused")
		m.mu.Lock()
		m.err = nil
		m.mu.Unlock()
		<-time.After(time.Second)
		synctest.Wait()
		require.Empty(t, m.left())
	})
}

// Without a System nothing is lost, and nothing waits for the timeout.
func TestWithoutGatewayRowsWait(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		system := actortest.QuietSystem()
		m := &memory{rows: []string{"a0"}, waiting: map[string]bool{}}
		r, err := Start(system, Config{
			Name: "relay", Ready: m, Gateway: system.NewLocalPID("missing"),
			PollInterval: time.Minute, MeasureInterval: time.Minute, Timeout: 10 * time.Second, Logger: actortest.DiscardLogger,
		})
		require.NoError(t, err)
		<-time.After(time.Second)
		synctest.Wait()
		require.ErrorIs(t, r.Err(), errNoGateway)
		require.Equal(t, []string{"a0"}, m.left())
		require.NoError(t, r.Stop(t.Context()))
	})
}

// Stop waits for the batch in flight until its context ends.
func TestStopWaitsForBatch(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		system := actortest.QuietSystem()
		m, g := &memory{rows: []string{"a0"}, waiting: map[string]bool{}}, &gateway{answer: func(string) messages.Answer { return nil }}
		pid, err := system.Root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor { return g }), "gateway")
		require.NoError(t, err)
		start := func() *Relay {
			r, err := Start(system, Config{
				Name: "relay", Ready: m, Gateway: pid,
				PollInterval: time.Minute, MeasureInterval: time.Minute, Timeout: 10 * time.Second, Logger: actortest.DiscardLogger,
			})
			require.NoError(t, err)
			synctest.Wait()
			return r
		}
		began := time.Now()
		require.NoError(t, start().Stop(t.Context()))
		require.Equal(t, 11*time.Second, time.Since(began))
		m.waiting = map[string]bool{}
		r := start()
		within, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, r.Stop(within), context.DeadlineExceeded)
		require.Equal(t, []string{"a0"}, m.left())
		require.NoError(t, system.Root.StopFuture(pid).Wait())
	})
}

// A crash of the actor loses no row.
func TestRestartedRelayContinues(t *testing.T) {
	relaying(t, done, nil, func(t *testing.T, m *memory, g *gateway, r *Relay) {
		m.mu.Lock()
		m.rows = []string{"a0"}
		m.mu.Unlock()
		r.system.Root.Send(r.loops[0].pid, claimed{incarnation: 1, batch: nil}) // a nil batch panics
		<-time.After(time.Second)
		synctest.Wait()
		require.Empty(t, m.left())
	})
}
