package main

import (
	"bytes"
	"log"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestQuickstart(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), redistest.Shared(t), log.New(&out, "", 0)))
	require.Equal(t, "scheduled inv-42\ncharge 42: 1999 cents, attempt 1\n", out.String())
}
