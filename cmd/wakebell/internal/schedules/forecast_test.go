package schedules

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/forecast"
)

// Column LATE is the longest wait of all warnings of a topic; one without has none.
func TestForecastShowsLongestWait(t *testing.T) {
	t.Parallel()
	warned := func(lates ...time.Duration) (all []forecast.Warning) {
		for _, late := range lates {
			all = append(all, forecast.Warning{Cause: forecast.CauseNodes, Late: late})
		}
		return all
	}
	var out bytes.Buffer
	require.NoError(t, printForecastTopics(&cli.App{Stdout: &out, Stderr: &out}, []forecast.Topic{
		{Name: "second", Warnings: warned(5*time.Minute, 3*time.Hour)},
		{Name: "first", Warnings: warned(3*time.Hour, 5*time.Minute)},
		{Name: "none"},
	}))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 4)
	at := strings.Index(lines[0], "LATE")
	require.Positive(t, at)
	for i, want := range []string{"3h0m", "3h0m", "-"} {
		require.Greater(t, len(lines[i+1]), at)
		require.Equal(t, want, strings.TrimSpace(lines[i+1][at:]))
	}
}
