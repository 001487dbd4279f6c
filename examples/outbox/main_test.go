package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/examples/internal/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

func TestOrders(t *testing.T) {
	program.Both(t, func(t *testing.T, p *program.Program) {
		base := strings.TrimPrefix(p.Line(), "listening on ")
		call := func(method, path string) (status int, body string) {
			request, err := http.NewRequestWithContext(t.Context(), method, base+path, nil)
			require.NoError(t, err)
			response, err := http.DefaultClient.Do(request)
			require.NoError(t, err)
			text, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			return response.StatusCode, strings.TrimSpace(string(text))
		}
		status, _ := call(http.MethodPut, "/orders/1")
		require.Equal(t, http.StatusNoContent, status)
		require.Equal(t, "mail: thank you for order 1", p.Line())
		status, _ = call(http.MethodPut, "/orders/1")
		require.Equal(t, http.StatusConflict, status, "a conflict writes no mail")
		require.Equal(t, "mail: order 1 was not paid", p.Line())
		_, state := call(http.MethodGet, "/orders/1")
		require.Equal(t, "cancelled", state)
		status, _ = call(http.MethodPost, "/orders/1/payment")
		require.Equal(t, http.StatusConflict, status)
		status, _ = call(http.MethodGet, "/orders/2")
		require.Equal(t, http.StatusNotFound, status)
		p.Terminate()
		require.Empty(t, strings.TrimSpace(p.Rest()))
	}, "PAY_WITHIN=300ms")
}

// A paid order is not cancelled. The example has a Redis of its own, since two on one
// Redis handle each other's messages.
func TestPaidOrders(t *testing.T) {
	t.Parallel()
	p := program.Start(t, "WAKEBELL_REDIS=", "PAY_WITHIN=1h")
	base := strings.TrimPrefix(p.Line(), "listening on ")
	for _, c := range []struct{ method, path string }{{http.MethodPut, "/orders/1"}, {http.MethodPost, "/orders/1/payment"}} {
		request, err := http.NewRequestWithContext(t.Context(), c.method, base+c.path, nil)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusNoContent, response.StatusCode)
	}
	require.Equal(t, "mail: thank you for order 1", p.Line())
	p.Terminate()
	require.Empty(t, strings.TrimSpace(p.Rest()))
}
