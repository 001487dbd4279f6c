package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRetune(t *testing.T) {
	b := setup(t)
	b.golden("retune.json", b.fine("retune", "-t", "TOPIC", "--max-concurrent", "2", "--lease-ttl", "1m", "--retry-max", "90s", "-o", "json"))
	b.golden("retune.txt", b.fine("retune", "-t", "TOPIC", "--max-attempts", "50"))
	b.golden("retune.txt", b.fine("retune", "-t", "TOPIC"))
	require.Contains(t, b.fine("retune", "-t", "TOPIC", "--max-lease-age", "0", "-o", "json"), `"max_lease_age":"0s"`)
	require.Contains(t, b.fine("retune", "-t", "TOPIC"), "0s", "a setting that is off differs from one that is not set")
	require.NotContains(t, b.fine("retune", "-t", "TOPIC", "--clear"), "max-attempts")
	require.Equal(t, 5, strings.Count(b.fine("retune", "-t", "TOPIC"), "\n"))
}
