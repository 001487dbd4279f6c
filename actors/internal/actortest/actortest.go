// Package actortest holds what the tests of several actor packages share: quiet
// actor systems, virtual time, and stores in memory.
package actortest

import (
	"log/slog"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Numbers returns the ids 0 to n-1.
func Numbers(n int) (ids []string) {
	for i := range n {
		ids = append(ids, strconv.Itoa(i))
	}
	return ids
}

// DiscardLogger discards what is logged.
var DiscardLogger = slog.New(slog.DiscardHandler)

// QuietSystem returns an actor system that logs nothing.
func QuietSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return DiscardLogger }))
}

// InVirtualTime runs a test in a synctest bubble, and waits until all timers have
// fired: protoactor counts dead letters for five seconds.
func InVirtualTime(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t)
		<-time.After(time.Minute)
	})
}
