package queue

import (
	"testing"

	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// TestQueueHeaders checks that the header of each script lists exactly what the
// script uses.
func TestQueueHeaders(t *testing.T) { storetest.CheckHeaders(t, lua) }
