package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/examples/internal/program"
	"github.com/wakebell/wakebell/internal/redistest"
)

func TestMain(m *testing.M) { program.Main(m, main) }

func TestRemote(t *testing.T) {
	t.Parallel()
	for name, redis := range map[string]func(*testing.T) string{
		"embedded": func(*testing.T) string { return "" },
		"redis":    func(t *testing.T) string { return "redis://" + redistest.Start(t).Addr },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := program.StartAs(t, []string{"node"}, "WAKEBELL_REDIS="+redis(t))
			address, ok := strings.CutPrefix(node.Line(), "listening on ")
			require.True(t, ok)
			shop := program.StartAs(t, []string{"shop", address}, "WAKEBELL_REDIS=redis://192.0.2.1:1")
			require.Equal(t, "inv-43 was pending and is cancelled, inv-42 is pending\n", shop.Rest())
			require.Equal(t, "charge 42: 1999 cents", node.Line())
			node.Terminate()
			require.Equal(t, "\n", node.Rest())
		})
	}
}
