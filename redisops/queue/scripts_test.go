package queue

import (
	"testing"

	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// TestQueueHeaders checks that what a header lists is what the script uses, no more and no less.
func TestQueueHeaders(t *testing.T) { storetest.CheckHeaders(t, lua) }
