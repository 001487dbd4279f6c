package joins

import (
	"testing"

	"github.com/wakebell/wakebell/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }
