package main

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

// TestListingsContinueAfterCursor lists in pages, each with the --after that the page
// before has printed.
func TestListingsContinueAfterCursor(t *testing.T) {
	b := setup(t)
	for i := range 5 {
		b.fine("schedule", "-t", "TOPIC", "--id", fmt.Sprint(i), "--in", "1h")
		b.fine("schedule", "-t", fmt.Sprintf("%s-%d", b.topic, i), "--in", "1h")
		b.fine(b.keyed("schedules", "put", fmt.Sprintf("%s-%d", b.topic, i), "--topic", "TOPIC", "--every", "1h")...)
		b.fine("queue", "publish", "--queue", "TOPIC", "--text", fmt.Sprint(i))
	}
	continues := regexp.MustCompile(`there are more than 2; --after '([^']+)' continues, --limit 0 shows all`)
	for field, args := range map[string][]string{
		"id":    {"ls", "-t", "TOPIC"},
		"topic": {"topics", "--prefix", b.topic},
		"name":  b.keyed("schedules", "ls"),
		"body":  {"queue", "ls", "--queue", "TOPIC"},
	} {
		args = append(args, "-o", "json")
		whole := b.fine(append(args, "--limit", "0")...)
		pages, after := "", ""
		for more := true; more; {
			code, stdout, stderr := b.call(append(args, "--limit", "2", "--after", after)...)
			require.Zero(t, code, stderr)
			require.LessOrEqual(t, len(objects(t, stdout)), 2)
			pages += stdout
			found := continues.FindStringSubmatch(stderr)
			if more = found != nil; more {
				after = found[1]
			}
		}
		require.Equal(t, whole, pages, field)
		require.GreaterOrEqual(t, len(objects(t, pages)), 5, field)
	}
	code, _, stderr := b.call("ls", "-t", "TOPIC", "--after", "x")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, stderr, "cursor")
}
