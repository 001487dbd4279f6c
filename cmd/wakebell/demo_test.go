package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
)

// The demo runs at a third of its speed, so that a machine that stalls for a moment
// does not change the scenario.
func TestDemo(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"embedded", "a server"} {
		t.Run(where, func(t *testing.T) {
			b := setup(t)
			args := []string{"demo"}
			if where == "a server" {
				args = b.args([]string{"demo", "--prefix", b.topic + "/"})
			}
			began := time.Now()
			var out, errs bytes.Buffer
			a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, forced: t.Context(), demoPace: 3}
			root := a.root()
			root.SetArgs(args)
			require.Zero(t, a.exitCode(root.ExecuteContextC(t.Context())), errs.String())
			require.Empty(t, errs.String(), "no noise")
			require.NotContains(t, out.String(), "\x1b", "no colour outside a terminal")
			for _, s := range scenario {
				require.Regexp(t, `(?m)^`+s.id+` +`+s.ending+` +`, out.String())
			}
			require.Contains(t, out.String(), "Everything happened as expected")
			require.Greater(t, time.Since(began), 30*time.Second)
			require.Empty(t, b.fine("topics", "--discover", "--prefix", b.topic+"/", "-o", "json"), "the demo leaves no topics")
		})
	}
}

func TestDemoReportsUnexpectedResults(t *testing.T) {
	b := setup(t)
	var out, errs bytes.Buffer
	a := &app{stdout: &out, stderr: &errs}
	d := &demo{client: b.client(), narrator: newNarrator(&out, false), records: map[string]*record{}}
	d.topic = wakebell.NewTopic[string](b.topic)
	for _, s := range scenario {
		d.records[s.id] = &record{attempts: s.attempts, ending: s.ending}
	}
	require.NoError(t, d.conclude(t.Context(), a))
	d.records["tea"].ending = ""
	err := d.conclude(t.Context(), a)
	require.EqualError(t, err, "tea: want fired after 1 attempts, got nothing after 1")
	b.fine("schedule", "-t", "TOPIC", "--in", "1h")
	require.ErrorContains(t, d.conclude(t.Context(), a), "1 timers are left in Redis")
}
