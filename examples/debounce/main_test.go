package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/examples/internal/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

func TestDebounce(t *testing.T) {
	program.Both(t, func(t *testing.T, p *program.Program) {
		require.Equal(t, `"W": timer created
"Wa": timer moved
"Wake": timer moved
"Wakebell": timer moved
index doc-1: "Wakebell"
`, p.Rest())
	})
}
