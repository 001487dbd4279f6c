package gates_test

import (
	"testing"

	"github.com/wakebell/wakebell/internal/stacktest"
)

func TestMain(m *testing.M) {
	stacktest.Main(m, map[string]func(string) error{contenderVariable: runContender})
}
