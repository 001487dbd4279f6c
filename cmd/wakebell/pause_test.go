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
	subscribed := strings.NewReplacer(`"nodes":0`, `"nodes":1`) // the node subscribes in the background
	b.golden("topics_paused.jsonl", subscribed.Replace(timeless(b.fine("topics", "--prefix", b.topic, "-o", "json"))))
	require.Contains(t, b.fine("topics", "--prefix", b.topic), "yes")
	b.golden("resume.txt", b.fine("resume", "-t", "TOPIC"))
	b.fine("schedule", "-t", "TOPIC", "--id", "x")
	require.Equal(t, "x", node.lines(1)[0]["id"], "the node continues after the resume")
	paused := objects(t, b.fine("pause", "-t", "TOPIC", "-o", "json"))
	require.NotEmpty(t, paused[0]["paused_by"])
}
