package recurring

import (
	"testing"

	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// TestBeatHeaders checks that the header of each script lists exactly what the
// script uses.
func TestBeatHeaders(t *testing.T) { storetest.CheckHeaders(t, lua) }
