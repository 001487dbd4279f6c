package dashboard

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
)

// A job that is not there is not called a timer.
func TestJobIsNotFound(t *testing.T) {
	t.Parallel()
	d, err := New(conntest.WithoutRedis(t, connection.Config{}), Operators{Timers: &hanging{}}, Config{})
	require.NoError(t, err)
	t.Cleanup(d.Close)
	for _, id := range []string{"7", "x", ""} {
		status, body := load(t, d, "/job?id="+id)
		require.Equal(t, http.StatusNotFound, status)
		require.Contains(t, body, "no such job")
		require.NotContains(t, body, "timer not found")
	}
}
