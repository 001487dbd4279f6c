package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

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
	for range flushRows {
		table.row("x", "y")
	}
	require.Greater(t, strings.Count(out.String(), "\n"), flushRows/2, "a long table does not wait for its end")
	require.NoError(t, table.flush())
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

func TestColourIsOnlyForThoseWhoWantIt(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	newNarrator(&out, false).tell(good, "id", "fires")
	require.Equal(t, "  0.0s  id      fires\n", out.String())
	out.Reset()
	newNarrator(&out, true).tell(good, "id", "fires")
	require.Equal(t, "\x1b[2m  0.0s\x1b[0m  \x1b[32mid      \x1b[0m\x1b[32mfires\x1b[0m\n", out.String())
	require.False(t, isTerminal(&out))
}
