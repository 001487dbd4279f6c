package timers

import (
	"testing"

	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// TestHeaders checks that the header of each script lists exactly what the script
// uses.
func TestHeaders(t *testing.T) { storetest.CheckHeaders(t, lua) }
