package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPauseAndResume(t *testing.T) {
	b := setup(t)
	node := b.start("node", "-t", "TOPIC")
	node.says("node runs")
	b.golden("pause.json", timeless(b.fine("pause", "-t", "TOPIC", "--by", "ada", "--reason", "the bank is down", "-o", "json")))
	b.golden("topics_paused.jsonl", timeless(b.fine("topics", "--prefix", b.topic, "-o", "json")))
	require.Contains(t, b.fine("topics", "--prefix", b.topic), "yes")
	b.golden("resume.txt", b.fine("resume", "-t", "TOPIC"))
	b.fine("schedule", "-t", "TOPIC", "--id", "x")
	require.Equal(t, "x", node.lines(1)[0]["id"], "the node goes on")
	paused := objects(t, b.fine("pause", "-t", "TOPIC", "-o", "json"))
	require.NotEmpty(t, paused[0]["paused_by"])
}

func TestRetune(t *testing.T) {
	b := setup(t)
	b.golden("retune.json", b.fine("retune", "-t", "TOPIC", "--max-concurrent", "2", "--lease-ttl", "1m", "--retry-max", "90s", "-o", "json"))
	b.golden("retune.txt", b.fine("retune", "-t", "TOPIC", "--max-attempts", "50"))
	b.golden("retune.txt", b.fine("retune", "-t", "TOPIC"))
	require.Contains(t, b.fine("retune", "-t", "TOPIC", "--max-lease-age", "0", "-o", "json"), `"max_lease_age":"0s"`)
	require.Contains(t, b.fine("retune", "-t", "TOPIC"), "0s", "off, and not: left to the nodes")
	require.NotContains(t, b.fine("retune", "-t", "TOPIC", "--clear"), "max-attempts")
	require.Equal(t, 5, strings.Count(b.fine("retune", "-t", "TOPIC"), "\n"))
}
