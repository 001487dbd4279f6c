package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/examples/internal/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

func TestQueue(t *testing.T) {
	program.Both(t, func(t *testing.T, p *program.Program) {
		require.Equal(t, `published ann: true
published ann: false
ann cannot be reached, try again
welcome, ann
no such user: eve
redriven: 1
`, p.Rest())
	})
}
