package main

import (
	"bytes"
	"log"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestReminder(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), redistest.Shared(t), log.New(&out, "", 0)))
	require.Equal(t, `inv-4: paid, its reminder was pending
inv-1: remind ada@example.org of 1999 cents, attempt 1
inv-2: the server is busy
inv-3: "nowhere" will never work
inv-2: remind busy@example.org of 500 cents, attempt 2
inv-3: dead letter, not an address: "nowhere"
`, out.String())
}
