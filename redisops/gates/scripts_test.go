package gates

import (
	"testing"

	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// TestGateHeaders checks that what a header lists is what the script uses, no more and no less.
func TestGateHeaders(t *testing.T) { storetest.CheckHeaders(t, lua) }
