package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/examples/internal/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

func TestActor(t *testing.T) {
	program.Both(t, func(t *testing.T, p *program.Program) {
		require.Equal(t, `rent: not enough money, attempt 1
wages: +1000, balance 1000
rent: -700, balance 300
receipt is printed: thank you
`, p.Rest())
	})
}
