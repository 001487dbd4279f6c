package joins

import (
	"testing"

	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// TestJoinsHeaders checks that the header of each script lists exactly what the script uses.
func TestJoinsHeaders(t *testing.T) { storetest.CheckHeaders(t, lua) }
