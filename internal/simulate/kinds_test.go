package simulate

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/apitest"
)

// TestEveryCallIsSimulated checks that a method of the public Client is in the table, or in
// the list of those that are tested elsewhere, and in one of them only.
func TestEveryCallIsSimulated(t *testing.T) {
	t.Parallel()
	var drawn []string
	for _, k := range kinds {
		drawn = append(drawn, k.calls...)
	}
	methods, others := apitest.Methods(t, "../..", "Client"), slices.Collect(maps.Keys(elsewhere))
	require.Subset(t, append(slices.Clone(drawn), others...), methods, "a kind of kinds.go, or a reason in elsewhere")
	require.Subset(t, methods, drawn, "methods that no longer exist")
	require.Subset(t, methods, others, "methods that no longer exist")
	for name, test := range elsewhere {
		require.NotContains(t, drawn, name)
		_, err := os.Stat(filepath.Join("..", "..", test))
		require.NoError(t, err, name)
	}
}
