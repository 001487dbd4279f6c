package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/examples/internal/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

func TestRecurring(t *testing.T) {
	program.Both(t, func(t *testing.T, p *program.Program) {
		require.Equal(t, `run 1 of sales: sales of the day
run 2 of sales: sales of the day
run 3 of sales: sales of the day
that was the last by itself
run 4 of sales: sales of the day
`, p.Rest())
	})
}
