package cli

import (
	"net/url"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func FuzzParseServers(f *testing.F) {
	f.Add("redis", "", "user:secret@host:6379/0")
	f.Add("rediss", clusterSuffix, "host:7000,host2?addr=host3:1")
	f.Add("redis", sentinelSuffix, ":p@[::1],a,b@c/mymaster/0")
	f.Add("redis", clusterSuffix, ",,@,")
	f.Fuzz(func(t *testing.T, base, kind, rest string) {
		u, err := parseServers(base, kind, rest)
		if err != nil {
			return
		}
		_, err = url.Parse(u.String())
		if kind == "" && err != nil {
			return // net/url writes some URLs in a form that it cannot parse
		}
		_ = checkParameters(u.Query()) // an error is permitted, a panic is not
	})
}

func TestServersOfList(t *testing.T) {
	t.Parallel()
	for rest, want := range map[string][]string{
		"h":                    {"h:26379"},
		"u:p@h1,[::1],h2:7/m":  {"h1:26379", "[::1]:26379", "h2:7"},
		"h1:1,h2:2?addr=h3:3":  {"h1:1", "h2:2", "h3:3"},
		"[::1]:5,[fe80::1]:6/": {"[::1]:5", "[fe80::1]:6"},
	} {
		u, err := parseServers("redis", sentinelSuffix, rest)
		require.NoError(t, err, rest)
		require.Equal(t, want, append([]string{u.Host}, u.Query()["addr"]...))
	}
	u, err := parseServers("redis", clusterSuffix, "u:p@h")
	require.NoError(t, err)
	require.Equal(t, "h:6379", u.Host)
	require.Equal(t, url.UserPassword("u", "p"), u.User)
}

func TestConnectionsAreRenewed(t *testing.T) {
	t.Parallel()
	lifetimes := func(where string) (all [][2]time.Duration) {
		s, err := dial(where, tlsFlags{})
		require.NoError(t, err)
		for _, rdb := range []redis.UniversalClient{s.redis, s.replicas} {
			switch c := rdb.(type) {
			case *redis.Client:
				all = append(all, [2]time.Duration{c.Options().ConnMaxLifetime, c.Options().ConnMaxLifetimeJitter})
			case *redis.ClusterClient:
				all = append(all, [2]time.Duration{c.Options().ConnMaxLifetime, c.Options().ConnMaxLifetimeJitter})
			}
			if rdb != nil {
				require.NoError(t, rdb.Close())
			}
		}
		return all
	}
	renewed := [2]time.Duration{5 * time.Minute, time.Minute}
	require.Equal(t, [][2]time.Duration{renewed}, lifetimes("redis://h:1/0"))
	require.Equal(t, [][2]time.Duration{renewed, renewed}, lifetimes("redis+sentinel://h:1/m?read_from=replicas"))
	require.Equal(t, [][2]time.Duration{renewed, renewed}, lifetimes("redis+cluster://h:1?read_from=replicas"))
	require.Equal(t, [][2]time.Duration{{10 * time.Second, 2 * time.Second}}, lifetimes("redis://h:1/0?conn_max_lifetime=10s"))
	require.Equal(t, [][2]time.Duration{{-1, -1}}, lifetimes("redis://h:1/0?conn_max_lifetime=0"))
}

// A server that was cut off is taken for unreachable after a second where another one can
// take over; where none can, a stall is waited for.
func TestSilentServersAreNoticedWhereAnotherTakesOver(t *testing.T) {
	t.Parallel()
	timeouts := func(where string) [2]time.Duration {
		s, err := dial(where, tlsFlags{})
		require.NoError(t, err)
		defer s.redis.Close() //nolint:errcheck // it has not connected
		switch c := s.redis.(type) {
		case *redis.ClusterClient:
			return [2]time.Duration{c.Options().DialTimeout, c.Options().ReadTimeout}
		case *redis.Client:
			return [2]time.Duration{c.Options().DialTimeout, c.Options().ReadTimeout}
		}
		return [2]time.Duration{}
	}
	require.Equal(t, [2]time.Duration{12 * time.Second, time.Second}, timeouts("redis+sentinel://h:1/m"), "a search of the master has dials of a second")
	require.Equal(t, [2]time.Duration{time.Second, time.Second}, timeouts("redis+cluster://h:1"))
	require.Equal(t, [2]time.Duration{30 * time.Second, 3 * time.Second}, timeouts("redis+sentinel://h:1/m?dial_timeout=2s&read_timeout=3s"))
	for _, d := range timeouts("redis://h:1") {
		require.Greater(t, d, 2*time.Second)
	}
}
