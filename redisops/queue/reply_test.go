package queue

import (
	"strings"
	"testing"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// TestLeaseDoesNotKeepItsReply checks that a held lease does not retain the memory
// of its reply. Otherwise a peer that holds one lease of each reply would make the
// node retain all of them.
func TestLeaseDoesNotKeepItsReply(t *testing.T) { // not parallel: it measures the heap
	const replies, leases = 100, 500
	message := "token 1 560 \x1eRMQ1:{\"id\":\"" + strings.Repeat("a", 32) + "\",\"payload\":\"" + strings.Repeat("x", 500) + "\"}"
	text := "1795246719.5 1795246749.5 250000 1 0 0 500 0 -\n" + strings.Repeat(message, leases)
	storetest.HoldsLittle(t, replies, leases, func() (*exchange.Reply, error) {
		return (&Source{}).parse(strings.Clone(text), time.Second, &exchange.Flow{})
	})
}
