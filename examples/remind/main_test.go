package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/examples/internal/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

func TestRemind(t *testing.T) {
	program.Both(t, func(t *testing.T, p *program.Program) {
		require.Equal(t, `a book is in the cart
it will be reminded to close
the process begins anew
the shelf is busy
a book goes back to the shelf
`, p.Rest())
	})
}
