package demo

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestColourIsOnlyForTerminals(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	newNarrator(&out, false).tell(good, "id", "fires")
	require.Equal(t, "  0.0s  id      fires\n", out.String())
	out.Reset()
	newNarrator(&out, true).tell(good, "id", "fires")
	require.Equal(t, "\x1b[2m  0.0s\x1b[0m  \x1b[32mid      \x1b[0m\x1b[32mfires\x1b[0m\n", out.String())
}
