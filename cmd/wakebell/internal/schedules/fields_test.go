package schedules

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/clitest"
)

func TestReferenceNamesFields(t *testing.T) {
	t.Parallel()
	a := &cli.App{}
	clitest.RequireFields(t, []*cobra.Command{Command(a), BeatCommand(a), ForecastCommand(a)}, map[string]any{
		"beat":               fireLine{},
		"forecast":           forecastLine{},
		"schedules ls":       recurringLine{},
		"schedules pause":    changedLine{},
		"schedules resume":   changedLine{},
		"schedules rm":       changedLine{},
		"schedules import":   changedLine{},
		"schedules backfill": backfilledLine{},
	})
}
