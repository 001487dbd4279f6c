package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/examples/internal/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

func TestShutdown(t *testing.T) {
	program.Both(t, func(t *testing.T, p *program.Program) {
		require.ElementsMatch(t, []string{"short begins", "long begins"}, []string{p.Line(), p.Line()})
		p.Terminate()
		require.Equal(t, []string{
			"short is done",
			"long gives up: draining: the deadline passed",
			"long is pending for another node, attempts so far: 0",
			"waiting is pending for another node, attempts so far: 0",
		}, strings.Split(strings.TrimSpace(p.Rest()), "\n"))
	})
}
