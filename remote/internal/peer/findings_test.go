package peer

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/loglimit"
	"github.com/wakebell/wakebell/remote/internal/limits"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestFindingsHideAddresses(t *testing.T) {
	t.Parallel()
	g := &Guard{Log: slog.New(slog.DiscardHandler), Lines: loglimit.Limiter{Every: time.Minute, Each: limits.LogLines.Principal, Total: limits.LogLines.Total}}
	g.Closing, g.Close = t.Context(), func() {}
	for _, secret := range []string{
		"dial tcp 10.1.2.3:6379: connect: connection refused", "dial tcp [fd00::1]:6379: i/o timeout",
		"lookup redis.internal on 10.0.0.53:53: no such host", "lookup redis.internal: no such host",
		"dial unix /run/redis/redis.sock: connect: no such file", "read tcp 10.0.0.1:40000->10.1.2.3:6379: EOF",
		"MOVED 1234 redis-0.internal:6379", "replica fd00:0:0:1::2 is late", "replica 10.1.2.3 is late", "ask redis.internal:6379",
	} {
		out := g.Findings([]wakebelltype.Finding{{Check: "reachable", Found: secret, Do: secret}})[0]
		require.NotRegexp(t, `10\.|fd00|internal|/run`, out.Found, secret)
		require.NotRegexp(t, `10\.|fd00|internal|/run`, out.Do, secret)
	}
	for _, plain := range []string{"7.2.4", "appendonly yes, everysec", "12 timers, 0.25 ms", "replicas: 2", "not checked: redis is not reachable"} {
		require.Equal(t, plain, g.Findings([]wakebelltype.Finding{{Found: plain}})[0].Found)
	}
	found := g.Findings([]wakebelltype.Finding{{Server: "10.0.0.1:6379"}, {Server: "10.0.0.1:6379"}, {Server: "10.0.0.2:6379"}, {}})
	require.Equal(t, []string{"master 1", "master 1", "master 2", ""}, []string{found[0].Server, found[1].Server, found[2].Server, found[3].Server})
}
