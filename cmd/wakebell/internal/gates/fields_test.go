package gates

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/clitest"
)

func TestReferenceNamesFields(t *testing.T) {
	t.Parallel()
	a := &cli.App{}
	clitest.RequireFields(t, []*cobra.Command{Command(a)}, map[string]any{
		"gate hold":    eventLine{},
		"gate ls":      listLine{},
		"gate repair":  repairLine{},
		"gate release": releasedLine{},
		"gate guard":   guardedLine{},
	})
}
