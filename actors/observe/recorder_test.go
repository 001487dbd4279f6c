package observe

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/wakebelltype"
)

// memory is a store that fails as told.
type memory struct {
	mu      sync.Mutex
	err     error
	calls   map[uint64]totals
	latest  map[uint64]time.Duration
	counted []uint64 // the numbers of the calls
	history []int    // attempts of each call
	node    string
}

func (m *memory) WriteCounts(_ context.Context, _, _ string, call uint64, c wakebelltype.ThroughputCounts) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counted = append(m.counted, call)
	// Also when it fails: the answer was lost.
	m.calls[call] = totals{Handled: c.Handled, Failed: c.Failed, Dead: c.Dead, Started: c.Started, Lateness: c.Lateness, Latenesses: c.Latenesses}
	m.latest[call] = c.MaxLateness
	return m.err
}

func (m *memory) WriteHistory(_ context.Context, _, node string, attempts []wakebelltype.Attempt) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.history, m.node = append(m.history, len(attempts)), node
	return m.err
}

func (m *memory) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

func (m *memory) total() (c totals) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, each := range m.calls {
		c = c.plus(each)
	}
	return c
}

func (m *memory) batches() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.history)
}

func (m *memory) numbers() []uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.counted)
}

func (m *memory) writer() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.node
}

// lockedLog is a buffer for several goroutines.
type lockedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

type bench struct {
	*Recorder
	store    *memory
	counters Counters
	topic    *TopicRecords
	io       sync.WaitGroup
	log      lockedLog
}

func newBench(policy wakebelltype.HistoryPolicy) *bench {
	b := &bench{store: &memory{calls: map[uint64]totals{}, latest: map[uint64]time.Duration{}}}
	b.Recorder = NewRecorder(b.store, "host/1/w", "me", slog.New(slog.NewTextHandler(&b.log, nil)), &b.io)
	b.topic = b.Add("t", nil, policy, &b.counters)
	return b
}

func (b *bench) handle(n int) {
	for range n {
		b.counters.Acked.Add(1)
		b.topic.Append(wakebelltype.Attempt{ID: "x", Outcome: wakebelltype.EventAcked})
	}
	b.topic.Wake()
}

// pass lets time pass, and waits for what it has begun.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestPoliciesSelectAttempts(t *testing.T) {
	t.Parallel()
	var none *TopicRecords
	none.Wake()
	none.Remove()
	require.False(t, none.Wants(false, true))
	for policy, want := range map[wakebelltype.HistoryPolicy][4]bool{
		wakebelltype.HistoryOff:      {false, false, false, false},
		wakebelltype.HistoryFailures: {false, true, true, true},
		wakebelltype.HistoryAll:      {true, true, true, true},
	} {
		topic := newBench(policy).topic
		require.Equal(t, want, [4]bool{topic.Wants(true, false), topic.Wants(true, true), topic.Wants(false, false), topic.Wants(false, true)}, policy)
	}
	require.Nil(t, NewRecorder(nil, "", "", nil, nil).Add("t", nil, wakebelltype.HistoryAll, nil))
	require.Nil(t, newBench(0).Add("t", nil, wakebelltype.HistoryOff, nil))
}

func TestRecordsAreWrittenInBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(wakebelltype.HistoryAll)
		b.handle(1200)
		pass(time.Second)
		require.Equal(t, []int{500, 500, 200}, b.store.batches())
		require.Equal(t, "host/1/w", b.store.writer())
		require.Empty(t, b.store.numbers())
		pass(5 * time.Second)
		require.Equal(t, totals{Handled: 1200}, b.store.total())
		pass(time.Hour)
		require.Len(t, b.store.numbers(), 1, "an idle recorder writes nothing")
		require.False(t, b.armed.Load())
		b.handle(1)
		pass(6 * time.Second)
		require.Equal(t, totals{Handled: 1201}, b.store.total())
		b.handle(1)
		b.Stop()
		b.io.Wait()
		require.Equal(t, totals{Handled: 1202}, b.store.total(), "the last are written at the stop")
		b.topic.Wake()
		require.Zero(t, b.Failed())
	})
}

func TestTopicThatIsRemovedIsForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(wakebelltype.HistoryAll)
		b.handle(1)
		b.topic.Remove()
		pass(time.Minute)
		require.Equal(t, totals{Handled: 1}, b.store.total())
		require.Empty(t, b.topics)
		require.False(t, b.armed.Load())
	})
}

// A call of counts that failed is repeated as it was, and history is not repeated.
func TestRecordsThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(wakebelltype.HistoryAll)
		b.store.fail(errors.New("memory is full"))
		b.counters.MaxLateness.Store(int64(time.Second))
		b.handle(3)
		pass(6*time.Second + writeEvery/2) // between two writes, from here on
		b.handle(4)
		pass(10 * time.Second)
		require.EqualValues(t, 7+3, b.Failed())
		b.store.fail(nil)
		pass(11 * time.Second)
		require.Equal(t, totals{Handled: 7}, b.store.total())
		require.Equal(t, []uint64{1, 1, 1, 1, 2}, b.store.numbers())
		require.Equal(t, map[uint64]time.Duration{1: time.Second, 2: 0}, b.store.latest)
		require.Equal(t, 2, strings.Count(b.log.String(), "records not written"), b.log.String())
		for range maxPendingAttempts + 5 {
			b.topic.Append(wakebelltype.Attempt{})
		}
		require.EqualValues(t, 10+5, b.Failed())
		b.Stop()
		b.io.Wait()
	})
}
