package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
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
		require.Equal(t, want, escape(in))
	}
}

func TestTablesAreAlignedEscapedAndFlushed(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	table := newTable(&out, "A", "B")
	table.row("\x1b[31m", "")
	require.NoError(t, table.flush())
	require.Equal(t, "A         B\n\\x1b[31m  -\n", out.String())
	for range heldRows {
		table.row("x", "y")
	}
	require.Greater(t, strings.Count(out.String(), "\n"), heldRows/2, "rows of a long table are printed before its end")
	require.NoError(t, table.flush())
}

// Output contains no control characters from stored data. JSON stays equivalent.
func TestJSONIsHarmlessForATerminal(t *testing.T) {
	t.Parallel()
	text := "csi \u009b2J del \x7f esc \x1b[2J bidi \u202e\u2066\u200f nul \x00 tag \U000E0041 fine blåbær 蒼 \u2028"
	body := json.RawMessage(`{"in": "` + "\u009b \x7f \u202e" + `"}`)
	line, err := jsonLine(map[string]any{"text": text, "body": body, text: 1})
	require.NoError(t, err)
	require.False(t, bytes.ContainsFunc(line[:len(line)-1], func(r rune) bool { return !unicode.IsPrint(r) }), "%q", line)
	require.Contains(t, string(line), "blåbær 蒼")
	var back map[string]any
	require.NoError(t, json.Unmarshal(line, &back))
	require.Equal(t, text, back["text"])
	require.Contains(t, back, text)
	require.Equal(t, map[string]any{"in": "\u009b \x7f \u202e"}, back["body"])

	var log bytes.Buffer
	newLogger(&log, "json", "info").Info("said", "text", text)
	newLogger(&log, "text", "info").Info("said", "text", text)
	for line := range strings.Lines(log.String()) {
		require.False(t, strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return !unicode.IsPrint(r) }), "%q", line)
	}
}

// Columns stay aligned in a table of any length.
func TestALongTableIsAligned(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	table := newTable(&out, "NAME", "N", "LAST")
	table.atLeast([]string{"the longest of all names"})
	for i := range 3500 {
		name := "x"
		if i == 3000 {
			name = "the longest of all names"
		}
		table.row(name, strconv.Itoa(1000+i), "end")
	}
	require.NoError(t, table.flush())
	columns := map[int]bool{}
	for line := range strings.Lines(out.String()) {
		if line[:4] != "NAME" {
			columns[strings.Index(line, "end")] = true
		}
	}
	require.Len(t, columns, 1)
}

// A refresh with more topics than rows of the terminal keeps the header visible.
func TestARefreshFitsTheScreen(t *testing.T) {
	t.Parallel()
	lines := []byte("HEAD\n1\n2\n3\n4\n5\n")
	require.Equal(t, "HEAD\n1\n2\n3 more: name topics with --topic, or make the terminal larger\n", string(fit(slices.Clone(lines), 5, 80)))
	require.Equal(t, lines, fit(slices.Clone(lines), 7, 80))
	require.Equal(t, lines, fit(slices.Clone(lines), 0, 0), "the terminal size is unknown")
	wide := []byte("HEAD\n" + strings.Repeat("x", 100) + "\n2\n3\n")
	require.Equal(t, "HEAD\n"+strings.Repeat("x", 100)+"\n2 more: name topics with --topic, or make the terminal larger\n", string(fit(wide, 5, 80)), "a long line takes two rows")
}

func TestASuggestionIsReadable(t *testing.T) {
	b := setup(t)
	code, _, stderr := b.call("lss")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "wakebell: Did you mean this?\nwakebell:   ls\n")
	require.NotContains(t, stderr, `\t`)
}

func TestContentIsShownByItsType(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ contentType, body, want string }{
		{"application/json", ` {"a": "<b>\u2028"} `, `"body":{"a":"<b>\u2028"}`},
		{"application/json; charset=utf-8", "[\n1.50,\n12345678901234567890]", `"body":[1.50,12345678901234567890]`},
		{"application/json", "{broken", `"body_base64":"e2Jyb2tlbg=="`},
		{"application/json", "\"\xff\"", `"body_base64":"Iv8i"`},
		{"text/plain", "a\n\"b\" <c>", `"body":"a\n\"b\" <c>"`},
		{"TEXT/Markdown; charset=utf-8", "# x", `"body":"# x"`},
		{"text/plain", "\xff", `"body_base64":"/w=="`},
		{"text/plain", "", `"body":""`},
		{"", "", `"body":null`},
		{"", "{}", `"body_base64":"e30="`},
		{"image/png", "", `"body_base64":""`},
		{"///", "x", `"body_base64":"eA=="`},
	} {
		line, err := jsonLine(newContent(wakebell.Content{ContentType: c.contentType, Body: []byte(c.body)}))
		require.NoError(t, err)
		require.Contains(t, string(line), c.want)
		require.Equal(t, 1, bytes.Count(line, []byte("\n")))
	}
}

func TestStamp(t *testing.T) {
	t.Parallel()
	require.Empty(t, stamp(time.Time{}))
	at := time.Date(2031, 1, 2, 3, 4, 5, 678_900_000, time.FixedZone("", 3600))
	require.Equal(t, "2031-01-02T02:04:05.6789Z", stamp(at))
}

func TestReadYes(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]bool{"y\n": true, " YES \n": true, "y": true, "n\n": false, "\n": false, "": false, "yep\n": false} {
		require.Equal(t, want, readYes(strings.NewReader(in)), "%q", in)
	}
}

func TestColourIsOnlyForTerminals(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	newNarrator(&out, false).tell(good, "id", "fires")
	require.Equal(t, "  0.0s  id      fires\n", out.String())
	out.Reset()
	newNarrator(&out, true).tell(good, "id", "fires")
	require.Equal(t, "\x1b[2m  0.0s\x1b[0m  \x1b[32mid      \x1b[0m\x1b[32mfires\x1b[0m\n", out.String())
	require.False(t, isTerminal(&out))
}
