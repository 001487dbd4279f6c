package node

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file that is being written, or was emptied by mistake, withdraws no rights.
func TestEmptyRightsFileIsRefusedOnReload(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n\n", "# all of it is a comment\n"} {
		file := filepath.Join(t.TempDir(), "rights")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		var log strings.Builder
		f := rightsFlag{file: file}
		f.reload(nil, slog.New(slog.NewTextHandler(&log, nil))) // without a server: it is not called
		require.Contains(t, log.String(), "keeping the previous ones")
		require.Contains(t, log.String(), "has no pattern")
	}
}
