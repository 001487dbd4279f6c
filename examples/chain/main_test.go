package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/examples/internal/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

// TestChain compares lines without their order: a step may begin before the one that has
// scheduled it prints that it did.
func TestChain(t *testing.T) {
	program.Both(t, func(t *testing.T, p *program.Program) {
		require.ElementsMatch(t, []string{
			"  orders.pack: created", "pack order-7",
			"  orders.ship: created", "ship order-7, attempt 1",
			"  orders.thank: created", "thank for order-7",
			"ship order-7, attempt 2", "  orders.thank: already done",
		}, strings.Split(strings.TrimSuffix(p.Rest(), "\n"), "\n"))
	})
}
