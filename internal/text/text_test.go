package text_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/text"
)

func TestCut(t *testing.T) {
	t.Parallel()
	require.Equal(t, "aé", text.Cut("aéé", 4))
	require.Equal(t, "aéé", text.Cut("aéé", 5))
	require.Empty(t, text.Cut("é", 1))
	require.Equal(t, "\xff", text.Cut("\xff\xff", 1), "invalid UTF-8 is kept")
}

func TestClip(t *testing.T) {
	t.Parallel()
	require.Equal(t, "ab", text.Clip("ab", 2))
	require.Equal(t, "ab…", text.Clip("abc", 2))
	require.Equal(t, "a…", text.Clip("aé", 2))
}

func TestValid(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a\uFFFDb", text.Valid("a\xffb"))
	require.Equal(t, "é", text.Valid("é"))
}

func TestEscaped(t *testing.T) {
	t.Parallel()
	require.Equal(t, "aé\uFFFD", text.Escaped("aé\uFFFD"))
	require.Equal(t, `a\xffé\xc3`, text.Escaped("a\xffé\xc3"))
}

func TestShellWord(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a/b:c", text.ShellWord("a/b:c"))
	require.Equal(t, `'it'\''s $x'`, text.ShellWord("it's $x"))
	require.Equal(t, "''", text.ShellWord(""))
}
