package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/examples/internal/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

func TestNightly(t *testing.T) {
	program.Both(t, func(t *testing.T, p *program.Program) {
		require.Equal(t, `run: extract, load and report sales
extract, attempt 1
extract, attempt 2
load 1200 rows
report sales: 1200 rows were loaded
`, p.Rest())
	})
}
