package topics

import (
	"testing"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/clitest"
)

func TestReferenceNamesFields(t *testing.T) {
	t.Parallel()
	a := &cli.App{}
	clitest.RequireFields(t, Commands(a), map[string]any{
		"topics":         topicLine{},
		"topics rm":      removedLine{},
		"topics shards":  shardsLine{},
		"topics reshard": reshardLine{},
		"topics import":  importedLine{},
		"topics move":    moveLine{},
		"repair":         repairLine{},
		"stats":          statsLine{},
		"doctor":         findingLine{},
		"pause":          pauseLine{},
	})
}
