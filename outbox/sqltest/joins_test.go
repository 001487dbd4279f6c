//go:build unix

package sqltest

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/outbox"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestJoinsOverOutbox commits batches whose parts are due at once, with the timers that wait for
// them, and a chain: the parts, whose handlers give no result, have ended as done.
func TestJoinsOverOutbox(t *testing.T) {
	const parts = 99
	w := newWorld(t, sqlite(t))
	reports := wakebell.NewTopic[string](redistest.Name(t) + "-reports")
	ends := make(chan string, 3)
	sys := w.system(t,
		wakebell.Handle(w.topic, func(context.Context, wakebell.Timer[string]) error { return nil }, wakebell.MaxConcurrent(100)),
		wakebell.Handle(reports, func(ctx context.Context, timer wakebell.Timer[string]) error {
			all := map[wakebelltype.End]int{}
			for e, err := range timer.Parts(ctx) {
				if err != nil {
					return err
				}
				all[e.End]++
			}
			ends <- fmt.Sprint(timer.ID, all)
			return nil
		}))
	var drafts []wakebell.Draft
	for _, id := range []string{"a", "b"} {
		mails := make([]wakebell.Draft, parts)
		for i := range mails {
			mails[i] = w.topic.Draft("mail", wakebell.ID(fmt.Sprint(id, i)))
		}
		drafts = append(drafts, wakebell.Batch(mails...).Then(reports.Draft("", wakebell.ID(id), wakebell.In(time.Hour)))...)
	}
	chain := wakebell.Chain(w.topic.Draft("first"), w.topic.Draft("second", wakebell.In(time.Hour)), reports.Draft("", wakebell.ID("c"), wakebell.In(time.Hour)))
	w.commit(t, func(tx *sql.Tx) {
		require.NoError(t, w.box.Schedule(t.Context(), tx, append(drafts, w.topic.Draft("alone"))...))
		require.NoError(t, w.box.Schedule(t.Context(), tx, chain...))
	})
	require.Equal(t, 2, w.rows(t, "SELECT COUNT(*) FROM "+w.box.Table()+" WHERE kind = 'batch'"))
	require.Equal(t, 3, w.rows(t, "SELECT COUNT(*) FROM "+w.box.Table()))
	relay, err := w.box.StartRelay(sys, w.db, outbox.RelayConfig{})
	require.NoError(t, err)
	seen := []string{<-ends, <-ends, <-ends}
	require.NoError(t, relay.Stop(t.Context()))
	require.ElementsMatch(t, []string{"amap[done:99]", "bmap[done:99]", "cmap[done:1]"}, seen)
	require.Zero(t, w.rows(t, "SELECT COUNT(*) FROM "+w.box.Table()))
}
