package doctor

import (
	"testing"

	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// TestDoctorHeaders checks that the header of each script lists exactly what the
// script uses.
func TestDoctorHeaders(t *testing.T) { storetest.CheckHeaders(t, lua) }
