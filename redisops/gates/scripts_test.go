package gates

import (
	"testing"

	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// TestGateHeaders checks that the header of each script lists exactly what the
// script uses.
func TestGateHeaders(t *testing.T) { storetest.CheckHeaders(t, lua) }
