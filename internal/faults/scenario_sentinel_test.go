package faults

import (
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

// failover kills a master with three Sentinels some time after its replica has lost
// the connection. Nodes and clients switch to the replica. Acknowledged writes that the
// replica has not received are counted separately.
func failover(w *world) {
	set := redistest.Sentinel(w.T)
	sentinels := set.Quorum(w.T)
	connect := func() *redis.Client {
		return set.Client(w.T, func(o *redis.FailoverOptions) { o.SentinelAddrs, o.ReadTimeout = sentinels, settleLimit })
	}
	w.rdb = set.Replica.Client(w.T, patient) // the later master
	cfg := w.config()
	cfg.Sentinels, cfg.Master = sentinels, redistest.MasterName
	w.start(3, cfg)
	l := w.usual()
	l.connect = func(string) redis.UniversalClient { return connect() }
	end := w.begin(l)
	w.pause(between(w.rng, 500*time.Millisecond, time.Second))

	loss := Fault{Kind: DataLoss, From: time.Now()}
	require.NoError(w, w.rdb.ReplicaOf(w.Context(), "127.0.0.1", "1").Err()) // no server listens there
	w.pause(between(w.rng, 100*time.Millisecond, 300*time.Millisecond))
	w.away(func() {
		set.Master.Kill()
		loss.To = time.Now()
		w.deliveries.RecordFault(loss)
		w.eventually("the replica is promoted", func() bool {
			return strings.Contains(w.rdb.Info(w.Context(), "replication").Val(), "role:master")
		})
	})
	w.pause(4 * time.Second)
	end()
	w.settled(settleLimit)
}
