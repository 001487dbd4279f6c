package faults

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/reminder"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	remindersFor  = 8 * time.Second
	reminderNodes = 3
	reminderLoss  = 0.02 // of all commands
)

// reminders has actors set reminders for themselves on nodes that are killed and started
// again with their names, and suspended, while commands are lost. In odd rounds Redis is
// killed and suspended too; in even rounds a replica takes over.
func reminders(w *world) {
	w.deliveries.AtLeastOnce, w.divided = true, true
	until := time.Now().Add(remindersFor)
	cfg := w.config()
	cfg.Until, cfg.MaxAttempts = until, 1000
	var set *redistest.Watched
	if w.round%2 == 0 {
		set = redistest.Sentinel(w.T)
		cfg.Sentinels, cfg.Master = set.Quorum(w.T), redistest.MasterName
		w.rdb = set.Master.Client(w.T, patient)
	} else {
		w.redis("--appendonly", "yes", "--appendfsync", "always")
	}
	for i := range reminderNodes {
		cfg.Reminders = fmt.Sprintf("n%d", i+1)
		_, err := newClient(w.T, w.rdb).Retune(w.Context(), reminder.DefaultTopic+":"+cfg.Reminders, wakebelltype.Settings{LeaseTTL: w.deliveries.TTL})
		require.NoError(w, err)
		if set == nil {
			cfg.Redis = w.link(w.fleet.Next(), reminderLoss, loss)
		}
		w.nodes = append(w.nodes, w.fleet.Start(cfg))
	}
	for strike := 1; time.Now().Before(until); strike++ {
		w.pause(between(w.rng, 100*time.Millisecond, 400*time.Millisecond))
		switch {
		case set != nil && strike == 3:
			w.promote(set)
		case set == nil && strike%4 == 0:
			w.crash()
		default:
			w.strikeNode()
		}
	}
	for _, n := range w.nodes {
		n.Ready()
	}
	w.settled(settleLimit)
}

// strikeNode kills and replaces a node, or suspends it for longer than a lease.
func (w *world) strikeNode() {
	w.Helper()
	w.tried()
	i := w.rng.IntN(len(w.nodes))
	if w.rng.IntN(2) == 0 {
		w.nodes[i].Kill()
		w.replace(i)
		return
	}
	resume := w.nodes[i].Stop()
	w.pause(between(w.rng, w.deliveries.TTL/2, w.deliveries.TTL*3/2))
	resume()
}

// crash kills Redis and starts it again, or suspends it.
func (w *world) crash() {
	w.Helper()
	w.away(func() {
		if w.rng.IntN(2) == 0 {
			w.server.Pause()
			w.pause(between(w.rng, w.deliveries.TTL/10, w.deliveries.TTL*3/2))
			w.server.Resume()
			return
		}
		w.server.Kill()
		w.pause(between(w.rng, 0, w.deliveries.TTL))
		w.server.Restart(w.T)
	})
}

// promote kills a master some time after its replica has lost the connection, and waits
// until the replica is the master.
func (w *world) promote(set *redistest.Watched) {
	w.Helper()
	w.rdb = set.Replica.Client(w.T, patient)
	loss := Fault{Kind: DataLoss, From: time.Now()}
	require.NoError(w, set.Replica.Client(w.T).ReplicaOf(w.Context(), "127.0.0.1", "1").Err()) // no server listens there
	w.pause(between(w.rng, 100*time.Millisecond, 300*time.Millisecond))
	w.away(func() {
		set.Master.Kill()
		loss.To = time.Now()
		w.deliveries.RecordFault(loss)
		w.eventually("the replica is promoted", func() bool {
			return strings.Contains(w.rdb.Info(w.Context(), "replication").Val(), "role:master")
		})
	})
}
