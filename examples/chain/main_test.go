package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/examples/internal/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

func TestChain(t *testing.T) {
	program.Both(t, func(t *testing.T, p *program.Program) {
		require.Equal(t, `  orders.pack: created
pack order-7
  orders.ship: created
ship order-7, attempt 1
  orders.thank: created
thank for order-7
ship order-7, attempt 2
  orders.thank: already done
`, p.Rest())
	})
}
