package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/examples/internal/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

func TestQuickstart(t *testing.T) {
	program.Both(t, func(t *testing.T, p *program.Program) {
		require.Equal(t, "scheduled inv-42\ncharge 42: 1999 cents, attempt 1\n", p.Rest())
	})
}
