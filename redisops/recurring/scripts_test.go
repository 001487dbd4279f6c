package recurring

import (
	"testing"

	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// TestBeatHeaders checks that what a header lists is what the script uses, no more and no less.
func TestBeatHeaders(t *testing.T) { storetest.CheckHeaders(t, lua) }
