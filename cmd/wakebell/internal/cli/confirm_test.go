package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadYes(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]bool{"y\n": true, " YES \n": true, "y": true, "n\n": false, "\n": false, "": false, "yep\n": false} {
		require.Equal(t, want, readYes(strings.NewReader(in)), "%q", in)
	}
}
