package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTokenFiles(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]map[string]string{
		"abc":                         {"abc": "peers"},
		"# all\n\n a : b:c \r\nd:e\n": {"b:c": "a", "e": "d"},
		"a:x\na:y":                    {"x": "a", "y": "a"},
		"":                            nil,
		"# none":                      nil,
		"a:":                          nil,
		":t":                          nil,
		"a:t\nb:t":                    nil,
	} {
		tokens, _, err := Tokens(writeTokens(t, text), func(text string) { require.Fail(t, text) })
		require.Equal(t, want == nil, err != nil, text)
		require.Equal(t, want, tokens, text)
	}
	_, err := Token(writeTokens(t, "a:x", "b:y"), nil)
	require.ErrorContains(t, err, "2 tokens")
	_, _, err = Tokens(filepath.Join(t.TempDir(), "none"), nil)
	require.ErrorIs(t, err, os.ErrNotExist)

	tokens, certificates, err := Tokens(writeTokens(t, "a:x cn:billing", "b:y", "z  sha256:00"), nil)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"x": "a", "y": "b", "z": "peers"}, tokens)
	require.Equal(t, map[string]string{"x": "cn:billing", "z": "sha256:00"}, certificates)

	open := writeTokens(t, "x")
	require.NoError(t, os.Chmod(open, 0o644)) // this causes a warning
	warned := ""
	_, _, err = Tokens(open, func(text string) { warned = text })
	require.NoError(t, err)
	require.Contains(t, warned, "other users than the owner have access")
}

// writeTokens writes a file that only its owner may read.
func writeTokens(t *testing.T, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600))
	return file
}
