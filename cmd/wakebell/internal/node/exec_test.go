package node

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A timer of the guard may run, and a command may fail, while the node stops.
func TestGuardOfCommandsThatHasStoppedDoesNothing(t *testing.T) {
	t.Parallel()
	g := &execGuard{log: slog.New(slog.DiscardHandler), paused: map[string]*time.Timer{}}
	g.stop()
	g.unable("orders", errors.New("not found"))
	g.resume("orders")
	require.Empty(t, g.paused)
}

// The output of a command is logged line by line, in however many pieces it comes.
func TestOutputOfCommandsIsLoggedByLine(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", longestLine+1)
	for _, pieces := range [][]string{
		{"one\ntwo\r\n\nthree"},
		{"on", "e\n", "two\n", "three\n"},
		{"one", "\ntwo\n\n", "th", "ree"},
		{"one\n" + long + "\n"},
		{long},
	} {
		var log bytes.Buffer
		l := &lineLog{log: slog.New(slog.NewJSONHandler(&log, nil))}
		for _, piece := range pieces {
			n, err := l.Write([]byte(piece))
			require.NoError(t, err)
			require.Equal(t, len(piece), n)
		}
		l.end()
		var lines []string
		for entry := range strings.Lines(log.String()) {
			var e struct{ Line string }
			require.NoError(t, json.Unmarshal([]byte(entry), &e))
			lines = append(lines, e.Line)
		}
		want := strings.FieldsFunc(strings.ReplaceAll(strings.Join(pieces, ""), long, long[1:]+"\nx"), func(r rune) bool { return r == '\n' || r == '\r' })
		require.Equal(t, want, lines)
	}
}
