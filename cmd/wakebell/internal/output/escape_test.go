package output

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

func TestEscape(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain, blåbær 蒼":   "plain, blåbær 蒼",
		"\x1b[2J":           `\x1b[2J`,
		"a\nb\tc\r":         `a\nb\tc\r`,
		"bad \xff utf-8":    `bad \xff utf-8`,
		"turn \u202e round": `turn \u202e round`,
		"nul \x00":          `nul \x00`,
		`it's "quoted" \`:   `it's "quoted" \`,
		"\ufffd is fine":    "\ufffd is fine",
	} {
		require.Equal(t, want, Escape(in))
	}
}

// Output contains no control characters from stored data. JSON stays equivalent.
func TestJSONIsHarmlessForTerminal(t *testing.T) {
	t.Parallel()
	text := "csi \u009b2J del \x7f esc \x1b[2J bidi \u202e\u2066\u200f nul \x00 tag \U000E0041 fine blåbær 蒼 \u2028"
	body := json.RawMessage(`{"in": "` + "\u009b \x7f \u202e" + `"}`)
	line, err := JSONLine(map[string]any{"text": text, "body": body, text: 1})
	require.NoError(t, err)
	require.False(t, bytes.ContainsFunc(line[:len(line)-1], func(r rune) bool { return !unicode.IsPrint(r) }), "%q", line)
	require.Contains(t, string(line), "blåbær 蒼")
	var back map[string]any
	require.NoError(t, json.Unmarshal(line, &back))
	require.Equal(t, text, back["text"])
	require.Contains(t, back, text)
	require.Equal(t, map[string]any{"in": "\u009b \x7f \u202e"}, back["body"])

	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(NewJSONEscaper(&log), nil)).Info("said", "text", text)
	slog.New(slog.NewTextHandler(&log, nil)).Info("said", "text", text)
	for line := range strings.Lines(log.String()) {
		require.False(t, strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return !unicode.IsPrint(r) }), "%q", line)
	}
}
