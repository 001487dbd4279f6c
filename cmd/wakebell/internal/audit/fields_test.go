package audit

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/clitest"
)

func TestReferenceNamesFields(t *testing.T) {
	t.Parallel()
	clitest.RequireFields(t, []*cobra.Command{Command(&cli.App{})}, map[string]any{"audit": line{}})
}
