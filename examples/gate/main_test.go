package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/examples/internal/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

func TestGate(t *testing.T) {
	program.Both(t, func(t *testing.T, p *program.Program) {
		require.Equal(t, `slow has the turn
slow is cut off from Redis
quick has the turn, once the lease of slow has ended
its token is newer: true
slow could know: the turn was lost
"written by slow" is refused: a newer token was here
the accounts: [written by quick]
`, p.Rest())
	})
}
