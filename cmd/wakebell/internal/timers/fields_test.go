package timers

import (
	"testing"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/clitest"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/explained"
)

func TestReferenceNamesFields(t *testing.T) {
	t.Parallel()
	a := &cli.App{}
	clitest.RequireFields(t, Commands(a), map[string]any{
		"schedule":     scheduledLine{},
		"wait":         endingLine{},
		"explain":      explained.Line{},
		"ls":           timerLine{},
		"cancel":       presenceLine{},
		"reschedule":   scheduledLine{},
		"run-now":      presenceLine{},
		"history":      historyLine{},
		"dead ls":      deadLine{},
		"dead redrive": redrivenLine{},
	})
}
