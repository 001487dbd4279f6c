package shards

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// changing is a topic whose place changes, and another Redis to which it may move.
type changing struct {
	from, to *fixture
}

func newChanging(t testing.TB) *changing {
	t.Helper()
	rdb, _ := redistest.Embedded(t)
	other, _ := redistest.Embedded(t)
	c := &changing{}
	c.from, c.to = pair(t, rdb, other, 2, 1)
	c.from.few()
	_, err := c.from.layouts.change(t.Context(), c.from.topic, func(l sharding.Layout) (sharding.Layout, error) {
		return l.Settled(time.Now().Add(-sharding.Linger)), nil
	})
	require.NoError(t, err)
	return c
}

// populate schedules timers with and without a key.
func (c *changing) populate(t testing.TB) {
	t.Helper()
	c.from.schedule(t, numbered(10)...)
	for i := range 8 {
		c.from.schedule(t, timers.Entry{ID: fmt.Sprint("k", i), Key: "k", At: hour})
	}
}

// populated is how many timers populate schedules.
const populated = 18

func (c *changing) mover(t testing.TB) *mover {
	t.Helper()
	m, err := c.from.mover(t.Context(), c.from.topic, c.to.Store, c.to.topic, wakebelltype.MoveOptions{All: true})
	require.NoError(t, err)
	return m
}

// takeAll leaves a batch in the outbox of each physical topic.
func takeAll(t testing.TB, of *transport, names []string) {
	t.Helper()
	for _, name := range names {
		_, err := of.take(t.Context(), name)
		require.NoError(t, err)
	}
}

// reshardUntil makes steps of a resharding to 3 shards.
func (c *changing) reshardUntil(t testing.TB, ended func(Progress) bool) {
	t.Helper()
	for p, err := range c.from.Reshard(t.Context(), c.from.topic, 3) {
		require.NoError(t, err)
		if ended(p) {
			return
		}
	}
}

// beginnings are changes that have begun, and whose process has ended.
var beginnings = map[string]func(t *testing.T, c *changing){
	"a resharding is announced": func(t *testing.T, c *changing) {
		t.Helper()
		c.populate(t)
		c.reshardUntil(t, func(p Progress) bool { return p.Layout.To > 0 })
	},
	"a resharding is half way": func(t *testing.T, c *changing) {
		t.Helper()
		c.populate(t)
		c.reshardUntil(t, func(p Progress) bool { return p.Moved > 0 })
	},
	"a resharding has taken timers": func(t *testing.T, c *changing) {
		t.Helper()
		c.populate(t)
		c.reshardUntil(t, func(p Progress) bool { return p.Moved > 0 })
		l, err := c.from.Layout(t.Context(), c.from.topic)
		require.NoError(t, err)
		takeAll(t, c.from.toShards(c.from.topic, l), sharding.Names(c.from.topic, l.From))
	},
	"a move has begun": func(t *testing.T, c *changing) {
		t.Helper()
		c.populate(t)
		c.mover(t)
	},
	"a move is half way": func(t *testing.T, c *changing) {
		t.Helper()
		c.populate(t)
		_, _, err := c.mover(t).step(t.Context(), c.from.names(t))
		require.NoError(t, err)
	},
	"a move has taken timers": func(t *testing.T, c *changing) {
		t.Helper()
		c.populate(t)
		m := c.mover(t)
		takeAll(t, m.transport, m.names)
	},
	"a move has taken timers that arrived": func(t *testing.T, c *changing) {
		t.Helper()
		c.populate(t)
		m := c.mover(t)
		for _, name := range m.names {
			took, err := m.take(t.Context(), name)
			require.NoError(t, err)
			if took.token == "" {
				continue
			}
			batch, err := readBatch(took.batch)
			require.NoError(t, err)
			parts, _ := c.to.spread(m.topic, m.layout, batch)
			for place, part := range parts {
				_, err := m.arrive(t.Context(), batch, place, took.token+" "+name, part)
				require.NoError(t, err)
			}
		}
	},
	"a move has begun with a topic without timers": func(t *testing.T, c *changing) {
		t.Helper()
		c.mover(t)
		c.populate(t)
	},
	"a topic was divided": func(t *testing.T, c *changing) {
		t.Helper()
		_, err := c.from.Divide(t.Context(), c.from.topic, 3)
		require.NoError(t, err)
		c.populate(t)
	},
	"a move has begun while a resharding was announced": func(t *testing.T, c *changing) {
		t.Helper()
		c.populate(t)
		m := c.mover(t)
		_, err := c.from.layouts.change(t.Context(), c.from.topic, func(l sharding.Layout) (sharding.Layout, error) {
			return l.Announced(3, time.Now()), nil
		})
		require.NoError(t, err)
		_, err = m.next(t.Context(), &MoveProgress{})
		require.ErrorIs(t, err, wakebelltype.ErrInvalid)
	},
	"a move has taken timers and the topic is resharded": func(t *testing.T, c *changing) { // by an earlier version
		t.Helper()
		c.populate(t)
		m := c.mover(t)
		takeAll(t, m.transport, m.names)
		c.from.startMoving(t, 3)
	},
}

// attempts are what an operator tries then. The error must say that it does nothing.
var attempts = map[string]func(t *testing.T, c *changing) error{
	"reshard": func(t *testing.T, c *changing) error {
		t.Helper()
		return c.reshard(t, c.from, 4)
	},
	"reshard the target": func(t *testing.T, c *changing) error {
		t.Helper()
		return c.reshard(t, c.to, 4)
	},
	"move": func(t *testing.T, c *changing) error {
		t.Helper()
		return c.move(t)
	},
	"divide": func(t *testing.T, c *changing) error {
		t.Helper()
		_, err := c.from.Divide(t.Context(), c.from.topic, 4)
		return err
	},
	"divide the target": func(t *testing.T, c *changing) error {
		t.Helper()
		_, err := c.to.Divide(t.Context(), c.to.topic, 4)
		return err
	},
	"abort": func(t *testing.T, c *changing) error {
		t.Helper()
		_, err := c.from.AbortMove(t.Context(), c.from.topic)
		return err
	},
	"resume": func(t *testing.T, c *changing) error {
		t.Helper()
		return c.resume(t)
	},
}

// reshard makes a resharding to its end, which comes soon.
func (c *changing) reshard(t *testing.T, f *fixture, n int) error {
	t.Helper()
	began := time.Now()
	for p, err := range f.Reshard(t.Context(), f.topic, n) {
		if err != nil || p.Done {
			return err
		}
		require.Less(t, time.Since(began), time.Minute, "the resharding does not end")
	}
	return nil
}

// move makes a move to its end, which comes soon.
func (c *changing) move(t *testing.T) error {
	t.Helper()
	began := time.Now()
	for p, err := range c.from.Move(t.Context(), c.from.topic, c.to.Store, c.to.topic, wakebelltype.MoveOptions{All: true}) {
		if err != nil || p.Done {
			return err
		}
		require.Less(t, time.Since(began), time.Minute, "the move does not end")
	}
	return nil
}

// resume continues the change that has begun.
func (c *changing) resume(t *testing.T) error {
	t.Helper()
	l, err := c.from.Layout(t.Context(), c.from.topic)
	require.NoError(t, err)
	if l.To > 0 || l.Moving {
		return c.reshard(t, c.from, max(l.To, l.Count()))
	}
	return c.move(t)
}

// rests checks that nothing has begun, and that each timer is there once. Those of an aborted
// move that arrived may be in both Redis.
func (c *changing) rests(t *testing.T, twice bool) {
	t.Helper()
	var ids []string
	for _, f := range []*fixture{c.from, c.to} {
		l, err := f.Layout(t.Context(), f.topic)
		require.NoError(t, err)
		require.Zero(t, l.To)
		require.False(t, l.Moves())
		for n := 1; n <= 4; n++ {
			for _, name := range sharding.Names(f.topic, n) {
				k := f.timers.Keys().Of(name)
				found, err := f.exist(t.Context(), k.Moving(), k.Leaving(), k.Left())
				require.NoError(t, err)
				require.Zero(t, found, name)
				ids = append(ids, f.in(t, []string{name})...)
			}
		}
	}
	slices.Sort(ids)
	if twice {
		ids = slices.Compact(ids)
	}
	require.Len(t, ids, populated)
	require.Len(t, slices.Compact(ids), populated)
}
