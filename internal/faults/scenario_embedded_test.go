package faults

import (
	"os"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/embedded/durable"
)

// embeddedStore kills a node that stores its timers in a directory. Node and store die
// together; clients schedule through the socket of the store. In each second round the
// store syncs its file once a second, which loses nothing either while the machine lives.
func embeddedStore(w *world) {
	w.fleet.Program = ""               // earlier versions know no store
	dir, err := os.MkdirTemp("", "wb") // the paths of sockets are short
	require.NoError(w, err)
	w.Cleanup(func() { _ = os.RemoveAll(dir) })
	cfg := w.config()
	cfg.Store, cfg.Socket, cfg.EverySec = filepath.Join(dir, "store"), filepath.Join(dir, "s"), w.round%2 == 0
	w.deliveries.Resolution = time.Millisecond
	options := &redis.Options{Network: "unix", Addr: cfg.Socket}
	patient(options)
	live := redis.NewClient(options)
	w.Cleanup(func() { _ = live.Close() })
	w.rdb = live
	w.start(1, cfg)
	w.watch(live)
	w.drained = func() { w.reopen(cfg.Store) }
	end := w.begin(w.usual())
	for range 12 {
		w.pause(between(w.rng, 50*time.Millisecond, 700*time.Millisecond))
		w.away(func() {
			w.nodes[0].Kill()
			w.pause(between(w.rng, time.Millisecond, w.deliveries.TTL*3/2))
			w.nodes[0] = w.fleet.Start(cfg)
			w.nodes[0].Ready()
		})
	}
	end()
	w.settled(settleLimit)
}

// reopen opens the store of a node that has ended, to see what is left in it.
func (w *world) reopen(dir string) {
	w.Helper()
	store, err := durable.Open(dir, durable.Options{Logger: quiet})
	require.NoError(w, err)
	rdb := store.Client()
	w.rdb = rdb
	w.Cleanup(func() {
		_ = rdb.Close() // before the store
		require.NoError(w, store.Close())
	})
}
