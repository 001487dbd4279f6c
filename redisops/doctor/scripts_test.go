package doctor

import (
	"testing"

	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// TestDoctorHeaders checks that what a header lists is what the script uses, no more and no less.
func TestDoctorHeaders(t *testing.T) { storetest.CheckHeaders(t, lua) }
