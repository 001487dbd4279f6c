package main

import (
	"bytes"
	"log"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestGate(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), redistest.SharedAddr(t), log.New(&out, "", 0)))
	require.Equal(t, `slow has the turn
slow is cut off from Redis
quick has the turn, once the lease of slow has ended
its token is newer: true
slow could know: the turn was lost
"written by slow" is refused: a newer token was here
the ledger: [written by quick]
`, out.String())
}
