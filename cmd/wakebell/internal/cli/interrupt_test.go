package cli

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

func TestErrorReportsProgress(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	require.Equal(t, broken, SoFar(broken, 0, "done"))
	require.EqualError(t, SoFar(broken, 7, "were done"), "7 were done: broken")
	require.ErrorIs(t, SoFar(context.Canceled, 0, "were done"), context.Canceled)
	require.EqualError(t, SoFar(context.Canceled, 0, "were done"), "0 were done: context canceled")

	var said bytes.Buffer
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	a := &App{Stderr: &said, began: true, interrupted: interrupted}
	require.Equal(t, ExitError, a.exitCode(&cobra.Command{}, SoFar(context.Canceled, 3, "were done")))
	require.Contains(t, said.String(), "3 were done: interrupted")
}
