//go:build unix

package files

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("12345"), 0o600))
	text, err := Read(file, 5)
	require.NoError(t, err)
	require.Equal(t, "12345", string(text))
	_, err = Read(file, 4)
	require.ErrorContains(t, err, "larger than 4 bytes")

	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, err = Read(pipe, 4)
	require.ErrorContains(t, err, "not a regular file")
	_, err = Read(dir, 4)
	require.ErrorContains(t, err, "not a regular file")
	_, err = Read(filepath.Join(dir, "none"), 4)
	require.ErrorIs(t, err, os.ErrNotExist)
}
