package records

import (
	"testing"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// TestRecordHeaders checks that the header of each script lists exactly what the
// script uses.
func TestRecordHeaders(t *testing.T) { storetest.CheckHeaders(t, lua) }
