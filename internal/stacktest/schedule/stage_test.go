package schedule_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// stage runs the table of whenTheIDExists: one topic with a timer for each cell.
type stage struct {
	unit    time.Duration
	late    bool // real time: a delivery may be late
	topic   wakebell.Topic[string]
	client  *wakebell.Client
	rdb     redis.UniversalClient
	acted   atomic.Bool   // later deliveries are acked
	release chan struct{} // closed when running handlers may end

	mu        sync.Mutex // guards the fields below
	delivered map[string][]wakebell.Timer[string]
	seen      map[string]error         // the result of Extend in a running handler
	looking   map[string]chan struct{} // closed when the handler has recorded its result
}

// cell is a cell of the table.
type cell struct {
	id, action, state string
	want              string
	since, at         time.Time // by Redis's clock: when its timer was scheduled, and when the action was applied
	answer            string
}

func newStage(unit time.Duration) *stage {
	return &stage{
		unit: unit, topic: wakebell.NewTopic[string]("t"), release: make(chan struct{}),
		delivered: map[string][]wakebell.Timer[string]{}, seen: map[string]error{}, looking: map[string]chan struct{}{},
	}
}

// cells returns the cells of the table. The id of a cell names its action and state.
func (s *stage) cells() (all []*cell) {
	for _, row := range whenTheIDExists {
		for i, want := range row.cells {
			if want != "" {
				all = append(all, &cell{id: row.action + ": " + states[i], action: row.action, state: states[i], want: want})
			}
		}
	}
	return all
}

// handler produces the states that need a handler.
func (s *stage) handler() wakebell.Handler {
	return wakebell.Handle(s.topic, func(ctx context.Context, timer wakebell.Timer[string]) error {
		s.mu.Lock()
		s.delivered[timer.ID] = append(s.delivered[timer.ID], timer)
		before, looks := s.looking[timer.ID], make(chan struct{})
		s.looking[timer.ID] = looks
		s.mu.Unlock()
		defer close(looks)
		_, state, _ := strings.Cut(timer.ID, ": ")
		switch {
		case s.acted.Load():
			if before != nil { // a running handler must call Extend before the timer is removed
				<-before
			}
			return nil
		case state == "retrying":
			return wakebell.RetryIn(2 * s.unit)
		case state == "dead":
			return wakebell.Reject(errors.New("no"))
		}
		select {
		case <-s.release:
		case <-ctx.Done():
		}
		err := cmp.Or(context.Cause(ctx), timer.Extend(ctx))
		s.mu.Lock()
		defer s.mu.Unlock()
		s.seen[timer.ID] = err
		return nil // has no effect after the lease was lost
	}, wakebell.MaxConcurrent(100))
}

func (s *stage) schedule(t *testing.T, id, body string, opts ...wakebell.ScheduleOption) wakebelltype.Outcome {
	t.Helper()
	scheduled, err := s.client.Schedule(t.Context(), s.topic.Draft(body, append(opts, wakebell.ID(id))...))
	require.NoError(t, err)
	return scheduled[0].Outcome
}

func (s *stage) now(t *testing.T) time.Time {
	t.Helper()
	now, err := s.rdb.Time(t.Context()).Result()
	require.NoError(t, err)
	return now
}

func (s *stage) peer() stacktest.Peer { return stacktest.Peer{Rdb: s.rdb, Topic: s.topic.Name()} }

func (s *stage) score(t *testing.T, units int) float64 {
	t.Helper()
	return float64(s.now(t).Add(time.Duration(units)*s.unit).UnixMicro()) / 1e6
}

// reached reports whether all cells with a state that a handler produces are in it.
func (s *stage) reached(t *testing.T, state string) bool {
	t.Helper()
	stats, err := s.client.Stats(t.Context(), s.topic.Name())
	require.NoError(t, err)
	many := int64(len(whenTheIDExists))
	switch state {
	case "running":
		return stats.Leased == many
	case "dead":
		return stats.Dead == many
	default:
		return stats.Retrying == many
	}
}

// put creates timers in the states that need no handler.
func (s *stage) put(t *testing.T, c *cell) {
	t.Helper()
	switch c.state {
	case "pending":
		s.schedule(t, c.id, "old", wakebell.In(2*s.unit))
	case "at a peer", "at a peer that commits":
		s.schedule(t, c.id, "old", wakebell.In(time.Minute))
		s.peer().Claim(t, c.id, s.score(t, 2))
	}
}

// act applies the action of the row to the cell's timer, and returns the answer.
func (s *stage) act(t *testing.T, c *cell) string {
	t.Helper()
	if first, second, ok := strings.Cut(c.action, ", "); ok {
		a, b := *c, *c
		a.action, b.action = first, second
		return s.act(t, &a) + ", " + s.act(t, &b)
	}
	verb, _, _ := strings.Cut(c.action, " ")
	units, _ := strconv.Atoi(c.action[strings.LastIndexByte(c.action, ' ')+1:])
	delay := time.Duration(units) * s.unit
	in := wakebell.In(delay)
	switch verb {
	case "replace":
		return s.schedule(t, c.id, "new", in).String()
	case "keep":
		return s.schedule(t, c.id, "new", in, wakebell.IfExists(wakebelltype.PolicyKeep)).String()
	case "earliest":
		return s.schedule(t, c.id, "new", in, wakebell.IfExists(wakebelltype.PolicyEarliest)).String()
	case "debounce":
		return s.schedule(t, c.id, "new", wakebell.Debounce(delay, 3*s.unit)).String()
	case "once":
		return s.schedule(t, c.id, "new", in, wakebell.Once(s.unit)).String()
	case "reschedule":
		moved, err := s.topic.Reschedule(t.Context(), s.client, c.id, in)
		return answerOf(t, moved.Outcome, err)
	case "run":
		found, err := s.topic.RunNow(t.Context(), s.client, c.id)
		return answerOf(t, found, err)
	case "cancel":
		found, err := s.topic.Cancel(t.Context(), s.client, c.id)
		return answerOf(t, found, err)
	}
	if c.action == "a peer commits" {
		s.peer().Commit(t, c.id)
	} else {
		s.peer().Publish(t, c.id, `{"data": "new", "headers": {}}`, s.score(t, units))
	}
	return "-"
}

func answerOf(t *testing.T, found fmt.Stringer, err error) string {
	t.Helper()
	if errors.Is(err, wakebell.ErrNotFound) {
		return "not found"
	}
	require.NoError(t, err)
	return found.String()
}

// saw returns the last error that a running handler received; - if no handler ran.
func (s *stage) saw(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	err, ran := s.seen[id]
	switch {
	case !ran:
		return "-"
	case err == nil:
		return "acked"
	case errors.Is(err, wakebell.ErrSuperseded):
		return "superseded"
	case errors.Is(err, wakebell.ErrCancelled):
		return "cancelled"
	default:
		return err.Error()
	}
}

// deliveredAfter describes the deliveries since the action on a cell. On a machine
// that stalls, a late delivery is described with the expected instant.
func (s *stage) deliveredAfter(c *cell) string {
	_, wanted, _ := strings.Cut(c.want[strings.LastIndexByte(c.want, ' '):], "@")
	due, _, _ := strings.Cut(wanted, "#")
	earliest, _ := strconv.Atoi(due)
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, timer := range s.delivered[c.id] {
		if timer.Delivered.Before(c.at) {
			continue
		}
		units := int(timer.Delivered.Sub(c.at).Round(s.unit) / s.unit)
		if s.late && !timer.Delivered.Before(c.since.Add(time.Duration(earliest)*s.unit)) {
			units = earliest
		}
		text := fmt.Sprintf("%s@%d", timer.Body, units)
		if timer.Attempt > 1 {
			text += fmt.Sprintf("#%d", timer.Attempt)
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		return "-"
	}
	return strings.Join(all, " ")
}
