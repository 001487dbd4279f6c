package main

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

func TestAnErrorReportsTheProgress(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	require.Equal(t, broken, soFar(broken, 0, "done"))
	require.EqualError(t, soFar(broken, 7, "were done"), "7 were done: broken")
	require.ErrorIs(t, soFar(context.Canceled, 0, "were done"), context.Canceled)
	require.EqualError(t, soFar(context.Canceled, 0, "were done"), "0 were done: context canceled")

	var said bytes.Buffer
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	a := &app{stderr: &said, began: true, interrupted: interrupted}
	require.Equal(t, exitError, a.exitCode(&cobra.Command{}, soFar(context.Canceled, 3, "were done")))
	require.Contains(t, said.String(), "3 were done: interrupted")
}
