package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/examples/internal/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

func TestRedrive(t *testing.T) {
	program.Both(t, func(t *testing.T, p *program.Program) {
		require.Equal(t, `the first version
tea: 2.50, attempt 1
dead: cake, price: strconv.ParseFloat: parsing "3,20": invalid syntax
redriven: 1
the second version
cake: 3.20, attempt 1
`, p.Rest())
	})
}
