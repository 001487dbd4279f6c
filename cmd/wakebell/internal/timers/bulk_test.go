package timers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/wakebelltype"
)

// listed is a client with 250 timers of which every second begins with "inv-".
type listed struct {
	wakebell.TimerClient
	recorded *[]wakebelltype.Change
}

func (l listed) RecordChange(_ context.Context, c wakebelltype.Change) error {
	*l.recorded = append(*l.recorded, c)
	return nil
}

func (listed) Overview(context.Context, ...string) ([]wakebelltype.Overview, error) {
	return nil, wakebell.ErrUnavailable
}

func (listed) Stats(context.Context, string) (wakebelltype.Stats, error) {
	return wakebelltype.Stats{Total: 500}, nil
}

func (listed) List(context.Context, string, wakebell.Filter, wakebelltype.Page) iter.Seq2[wakebell.Info, error] {
	return func(yield func(wakebell.Info, error) bool) {
		for i := range 500 {
			info := wakebell.Info{ID: fmt.Sprintf("inv-%d", i)}
			if i%2 == 1 {
				info.ID = fmt.Sprintf("other-%d", i)
			}
			if !yield(info, nil) {
				return
			}
		}
	}
}

// A bulk change that is interrupted finishes its step, says what it did and records it.
func TestInterruptedBulkChangeReportsItsProgress(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	a := &cli.App{Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}}
	f := &bulkFlags{yes: true}
	f.text = "inv-"
	changed := 0
	var recorded []wakebelltype.Change
	c := listed{recorded: &recorded}
	b := bulk{verb: "cancel", done: "cancelled", topic: "t", operation: wakebelltype.AuditTopicCancel, change: func(ctx context.Context, ids []string) (int, error) {
		if changed += len(ids); changed == 2*bulkStep {
			interrupt()
		}
		return len(ids), ctx.Err()
	}}
	err := b.run(ctx, a, c, f)
	require.EqualError(t, err, "200 of 250 timers were cancelled; run the same command again for the rest: interrupted")
	require.Equal(t, 200, changed)
	require.Equal(t, []wakebelltype.Change{{
		Operation: wakebelltype.AuditTopicCancel, Name: "t", Count: 200, Detail: `timers whose ids begin with "inv-"`, Error: "interrupted",
	}}, recorded)

	failing := errors.New("connection refused")
	b.change = func(context.Context, []string) (int, error) { return 7, failing }
	err = b.run(t.Context(), a, c, f)
	require.ErrorIs(t, err, failing)
	require.ErrorContains(t, err, "7 of 250 timers were cancelled")
	require.Len(t, recorded, 2)
	require.EqualValues(t, 7, recorded[1].Count)
	require.Equal(t, "connection refused", recorded[1].Error)
}

// Results are shown in the order of the ids, and a timer that is gone is left out.
func TestEachKeepsOrder(t *testing.T) {
	t.Parallel()
	var ids, shown []string
	for i := range 100 {
		ids = append(ids, fmt.Sprint(i))
	}
	changed, err := each(ids, func(id string) (string, error) {
		if id == "50" {
			return "", fmt.Errorf("%w: 50", wakebell.ErrNotFound)
		}
		return id, nil
	}, func(id, result string) error {
		require.Equal(t, id, result)
		shown = append(shown, id)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 99, changed)
	require.Equal(t, append(ids[:50:50], ids[51:]...), shown)
}
