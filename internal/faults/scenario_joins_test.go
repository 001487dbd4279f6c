package faults

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	fewJoins = 20 // a round takes about as long as those of the other scenarios
	// joinTopics topics of joinShards shards have the parts of joins.
	joinTopics, joinShards = 4, 4
	// partsFor is over what time the parts of a join are due: for longer than it takes until
	// timers move to other shards.
	partsFor = 8 * time.Second
)

// joins schedules joins with parts on several topics with shards, one of which gets another
// number of them, while nodes are killed and suspended and links lose commands. Every join
// fires, long before its instant, and says how its parts have ended. Of 20 parts one is
// rejected and one fails twice; in long rounds one of 50 is cancelled, which audits find after
// half a minute.
func joins(w *world) {
	n, parts := fewJoins, 20
	if w.round == 1 && *joinsOf > n {
		n, parts = *joinsOf, 100
	}
	w.redis()
	w.divided = true
	cfg := w.config()
	cfg.MaxConcurrent, cfg.Joins, cfg.Shards = 40, true, map[string]int{}
	for i := range joinTopics {
		cfg.Shards[fmt.Sprint("parts-", i)] = joinShards
	}
	for range 4 {
		w.nodes = append(w.nodes, w.lossyNode(cfg, nodesLoss))
	}
	for _, node := range w.nodes {
		node.Ready()
	}
	reshard := func(n int) {
		for _, err := range newClient(w.T, w.rdb).Reshard(w.Context(), "parts-1", n) {
			if err != nil {
				w.Errorf("reshard to %d: %v", n, err)
			}
		}
	}
	reshard(joinShards) // until nodes have the first number
	began := time.Now()
	var work sync.WaitGroup
	var scheduled atomic.Bool
	work.Go(func() {
		w.scheduleJoins(n, parts)
		scheduled.Store(true)
	})
	work.Go(func() { reshard(joinShards - 1) })
	// Joins with cancelled parts wait for an audit, which nodes that live for a second never begin.
	for busy := true; busy; {
		w.hit(cfg, nodesLoss)
		left, err := w.timers(w.Context())
		busy = err != nil || !scheduled.Load() || left > int64(n+n*parts/10)
	}
	work.Wait()
	limit := settleLimit * time.Duration(1+n/200)
	require.Eventually(w, func() bool { return len(w.deliveries.Joined()) == n }, limit, settleTick, "joins wait for ever")
	took := time.Since(began)
	require.Eventually(w, func() bool { return !w.some(w.Context()) }, limit, settleTick, "parts wait for ever")
	w.drainAll()
	w.empty()
	want := map[wakebelltype.End]int{wakebelltype.EndDone: parts * 19 / 20, wakebelltype.EndDead: parts / 20}
	if parts > 50 {
		want[wakebelltype.EndDone] -= parts / 50
		want[wakebelltype.EndCancelled] = parts / 50
	}
	joined := w.deliveries.Joined()
	for _, id := range slices.Sorted(maps.Keys(joined)) {
		for _, ends := range joined[id] {
			require.Equal(w, want, ends, id)
		}
	}
	report.Note("joins", "%d joins of %d parts in %v", n, parts, took.Round(100*time.Millisecond))
}

// scheduleJoins schedules joins, and cancels parts of them.
func (w *world) scheduleJoins(n, parts int) {
	w.Helper()
	c := newClient(w.T, w.rdb)
	joined, topics := wakebell.NewTopic[Work](topic), make([]wakebell.Topic[Work], joinTopics)
	for i := range topics {
		topics[i] = wakebell.NewTopic[Work](fmt.Sprint("parts-", i))
	}
	var cancelled [joinTopics][]string
	for i := range n {
		drafts := make([]wakebell.Draft, parts)
		for k := range drafts {
			id, of, work, in := fmt.Sprintf("client-j/%d-%d", i, k), (i+k)%joinTopics, Work{}, partsFor*time.Duration(k)/time.Duration(parts)
			switch {
			case k%20 == 7:
				work.Reject = true
			case k%20 == 11:
				work.Fails = 2
			case k%50 == 33 && parts > 50:
				in, cancelled[of] = time.Hour, append(cancelled[of], id)
			}
			drafts[k] = topics[of].Draft(work, wakebell.ID(id), wakebell.In(in))
		}
		_, err := c.Schedule(w.Context(), wakebell.Batch(drafts...).Then(joined.Draft(Work{}, wakebell.ID(fmt.Sprint("client-j/", i)), wakebell.In(time.Hour)))...)
		require.NoError(w, err)
	}
	for i, ids := range cancelled {
		if len(ids) > 0 {
			_, err := c.Cancel(w.Context(), fmt.Sprint("parts-", i), ids...)
			require.NoError(w, err)
		}
	}
}
