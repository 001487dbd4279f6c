package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/examples/internal/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

func TestReminder(t *testing.T) {
	program.Both(t, func(t *testing.T, p *program.Program) {
		require.Equal(t, `inv-4: paid, its reminder was pending
inv-1: remind ada@example.org of 1999 cents, attempt 1
inv-2: the server is busy
inv-3: "nowhere" will never work
inv-2: remind busy@example.org of 500 cents, attempt 2
inv-3: dead letter, not an address: "nowhere"
`, p.Rest())
	})
}
