package messages_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The gRPC stubs are in messages/rpc so that programs that only embed a System do not
// link gRPC.
func TestTheRootPackageDoesNotImportGRPC(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "github.com/wakebell/wakebell").Output()
	require.NoError(t, err)
	imports := strings.Fields(string(out))
	require.Contains(t, imports, "github.com/wakebell/wakebell/messages")
	require.NotContains(t, imports, "google.golang.org/grpc")
}
