package audit

import (
	"testing"

	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// TestAuditHeaders checks that the header of each script lists exactly what the
// script uses.
func TestAuditHeaders(t *testing.T) { storetest.CheckHeaders(t, lua) }
