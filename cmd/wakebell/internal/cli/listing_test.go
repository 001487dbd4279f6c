package cli

import (
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
)

// A cursor is the name of a topic, which others may have chosen: a shell takes it as one word.
func TestCursorIsOneWordOfShell(t *testing.T) {
	t.Parallel()
	lost := errors.New("the connection was lost")
	items := func(fault error) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			_ = yield("x'; reboot; '\x1b[2J", nil) && yield("y", fault)
		}
	}
	const word = `--after 'x'\''; reboot; '\''`
	for _, fault := range []error{nil, lost} {
		var out, notes strings.Builder
		a := &App{Stdout: &out, Stderr: &notes}
		list := a.NewListing(1, output.Text("NAME"))
		err := PrintAll(list, items(fault), func(name string) string { return name }, func(name string) (any, []string) { return name, []string{name} })
		require.ErrorIs(t, err, fault)
		if fault == nil {
			require.Contains(t, notes.String(), word+`\x1b[2J' continues`)
		} else {
			require.ErrorContains(t, err, word)
		}
	}
}
