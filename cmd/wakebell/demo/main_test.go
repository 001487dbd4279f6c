package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The demo is what a newcomer compiles first, so it leaves out the packages that most of the
// time goes into and that it does not need.
func TestDemoIsCompiledFromFewPackages(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").CombinedOutput()
	require.NoError(t, err, string(out))
	for pkg := range strings.Lines(string(out)) {
		for _, heavy := range []string{
			"google.golang.org/grpc", "google.golang.org/genproto", "golang.org/x/net", "go.opentelemetry.io/otel/exporters/otlp",
			"github.com/spf13", "github.com/wakebell/wakebell/remote", "github.com/wakebell/wakebell/dashboard",
		} {
			require.False(t, strings.HasPrefix(pkg, heavy), pkg)
		}
	}
}
