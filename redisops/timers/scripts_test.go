package timers

import (
	"testing"

	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// TestHeaders checks that what a header lists is what the script uses, no more and no less.
func TestHeaders(t *testing.T) { storetest.CheckHeaders(t, lua) }
