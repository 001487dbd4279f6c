package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/examples/internal/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

func TestImport(t *testing.T) {
	program.Both(t, func(t *testing.T, p *program.Program) {
		require.Equal(t, `attempt 1 begins at row 0
attempt 2 begins at row 5000
done by attempt 2: 10000 rows, sum 49995000
progress: 100 %, 10000 of 10000 rows
`, p.Rest())
	})
}
