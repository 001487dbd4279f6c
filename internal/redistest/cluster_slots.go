package redistest

import (
	"testing"

	"github.com/redis/go-redis/v9"
)

// migrateTimeout is the timeout of a MIGRATE, in ms.
const migrateTimeout = 10_000

// MoveSlot moves a slot of a Cluster with its keys from one master to another, as
// redis-cli does. Between is called after each key: while the slot has keys on both
// servers, commands that need several of them fail with TRYAGAIN.
func MoveSlot(t testing.TB, slot int, from, to *Server, between func()) {
	t.Helper()
	source, target := from.Client(t), to.Client(t)
	do := func(rdb *redis.Client, args ...any) *redis.Cmd {
		t.Helper()
		cmd := rdb.Do(t.Context(), args...)
		if err := cmd.Err(); err != nil {
			t.Fatalf("redistest: %v on %s: %v", args, rdb.Options().Addr, err)
		}
		return cmd
	}
	sourceID, targetID := do(source, "CLUSTER", "MYID").Val(), do(target, "CLUSTER", "MYID").Val()
	do(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", sourceID)
	do(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", targetID)
	for {
		keys, err := do(source, "CLUSTER", "GETKEYSINSLOT", slot, 1).StringSlice()
		if err != nil {
			t.Fatalf("redistest: keys in slot %d: %v", slot, err)
		}
		if len(keys) == 0 {
			break
		}
		do(source, "MIGRATE", "127.0.0.1", to.port, keys[0], 0, migrateTimeout) // NOKEY, if it has expired, is no error
		between()
	}
	do(target, "CLUSTER", "SETSLOT", slot, "NODE", targetID)
	do(source, "CLUSTER", "SETSLOT", slot, "NODE", targetID)
}
