package node

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/clitest"
)

func TestReferenceNamesFields(t *testing.T) {
	t.Parallel()
	a := &cli.App{}
	clitest.RequireFields(t, []*cobra.Command{Command(a), RightsCommand(a)}, map[string]any{
		"node":         delivery{},
		"rights check": verdict{},
	})
}
