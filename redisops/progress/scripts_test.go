package progress

import (
	"testing"

	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// TestProgressHeaders checks that the header of each script lists exactly what the
// script uses.
func TestProgressHeaders(t *testing.T) { storetest.CheckHeaders(t, lua) }
