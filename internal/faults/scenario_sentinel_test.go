package faults

import (
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

// failover kills the master of a set with three Sentinels, some time after its
// replica has lost touch. Nodes and clients go on with the replica by themselves.
// What the master had acknowledged and the replica never got is counted apart.
func failover(w *world) {
	set := redistest.Sentinel(w.T)
	sentinels := set.Quorum(w.T)
	connect := func() *redis.Client {
		return set.Client(w.T, func(o *redis.FailoverOptions) { o.SentinelAddrs, o.ReadTimeout = sentinels, settleLimit })
	}
	w.rdb = set.Replica.Client(w.T, patient) // where all ends
	cfg := w.config()
	cfg.Sentinels, cfg.Master = sentinels, redistest.MasterName
	w.start(3, cfg)
	l := w.usual()
	l.connect = func(string) redis.UniversalClient { return connect() }
	end := w.begin(l)
	w.pause(between(w.rng, 500*time.Millisecond, time.Second))

	forgets := Fault{Kind: Amnesia, From: time.Now()}
	require.NoError(w, w.rdb.ReplicaOf(w.Context(), "127.0.0.1", "1").Err()) // where nobody answers
	w.pause(between(w.rng, 100*time.Millisecond, 300*time.Millisecond))
	w.away(func() {
		set.Master.Kill()
		forgets.To = time.Now()
		w.ledger.Struck(forgets)
		w.eventually("the replica is promoted", func() bool {
			return strings.Contains(w.rdb.Info(w.Context(), "replication").Val(), "role:master")
		})
	})
	w.pause(4 * time.Second)
	end()
	w.settled(settleLimit)
}
