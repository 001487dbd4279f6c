package messages_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The gRPC stubs are in messages/rpc so that programs that only embed a System do not
// link gRPC.
func TestRootPackageDoesNotImportGRPC(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "github.com/wakebell/wakebell").Output()
	require.NoError(t, err)
	imports := strings.Fields(string(out))
	require.Contains(t, imports, "github.com/wakebell/wakebell/messages")
	require.NotContains(t, imports, "google.golang.org/grpc")
}

// SDK and exporters of metrics and traces are for programs to choose. Protoactor links
// some of them, but the library uses none.
func TestLibraryImportsNoExporter(t *testing.T) {
	t.Parallel()
	form := "{{range .Imports}}{{$.ImportPath}} {{.}}\n{{end}}"
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", form, "github.com/wakebell/wakebell").Output()
	require.NoError(t, err)
	ours := 0
	for line := range strings.Lines(string(out)) {
		importer, imported, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(importer, "github.com/wakebell/wakebell") {
			continue
		}
		ours++
		for _, heavy := range []string{"go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/exporters", "github.com/prometheus/"} {
			require.False(t, strings.HasPrefix(imported, heavy), "%s imports %s", importer, imported)
		}
	}
	require.Greater(t, ours, 100)
}
