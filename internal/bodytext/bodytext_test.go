package bodytext

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// deep is JSON of 20 KB that json.Indent makes 200 MB of.
var deep = strings.Repeat("[", 9990) + strings.Repeat("]", 9990)

func TestDeepJSONStaysSmall(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"deep":         deep,
		"deep objects": strings.Repeat(`{"a":`, 9990) + "1" + strings.Repeat("}", 9990),
		"wide at the bound": strings.Repeat("[", maxDepth-1) + strings.Repeat("[],", 20_000) + "1" +
			strings.Repeat("]", maxDepth-1),
		"mixed": strings.Repeat("[1,[2],", 5000) + "3" + strings.Repeat("]", 5000),
	} {
		text, cut, ok := JSON([]byte(body), MaxShown)
		require.True(t, ok, name)
		require.LessOrEqual(t, len(text), Limit(MaxShown), name)
		require.NotEmpty(t, text, name)
		require.Equal(t, name == "wide at the bound", cut, name)
	}
	_, _, ok := JSON([]byte(deep), len(deep)-1)
	require.False(t, ok, "larger bodies are not indented")
}

func TestClipKeepsCharacters(t *testing.T) {
	t.Parallel()
	s, cut := Clip("aé", 2)
	require.Equal(t, "a", s)
	require.True(t, cut)
	s, cut = Clip("aé", 3)
	require.Equal(t, "aé", s)
	require.False(t, cut)
}

// The text is that of json.Indent where it is not bounded, and has the same value where it
// is not cut.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{"a": [1, {"b": []}, "x\"\\"], "c": {}}`, ` [ ] `, `"é"`, `-1.5e3`, `[[[[null]]], true , {} ]`, deep[:200], "\t{}\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		const shown = 1 << 10
		text, cut, ok := JSON(body, shown)
		require.LessOrEqual(t, len(text), Limit(shown))
		if !ok {
			require.True(t, len(body) > shown || !json.Valid(body) || !utf8.Valid(body))
			return
		}
		var want, compact, plain bytes.Buffer
		require.NoError(t, json.Indent(&want, bytes.TrimSpace(body), "", "  "))
		if !cut && !strings.Contains(want.String(), strings.Repeat("  ", maxDepth+1)) {
			require.Equal(t, want.String(), text)
		}
		if cut {
			return
		}
		require.NoError(t, json.Compact(&compact, body))
		require.NoError(t, json.Compact(&plain, []byte(text)))
		require.Equal(t, compact.String(), plain.String())
	})
}
