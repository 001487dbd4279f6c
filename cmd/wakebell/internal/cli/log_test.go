package cli

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A log in JSON has durations as people write them, also within groups.
func TestDurationsOfJSONLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	NewLogger(&log, "json", "info").Info("paused", "for", 90*time.Second, slog.Group("topic", "age", 1500*time.Millisecond))
	require.Contains(t, log.String(), `"for":"1m30s"`)
	require.Contains(t, log.String(), `"age":"1.5s"`)
}
