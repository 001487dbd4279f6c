package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/internal/redistest"
)

// works schedules a timer by a URL and lists it.
func (b *bundle) works(where string, flags ...string) {
	b.t.Helper()
	b.redis = where
	b.fine(append(flags, "schedule", "-t", "TOPIC", "--id", "x", "--in", "1h")...)
	require.Contains(b.t, b.fine(append(flags, "ls", "-t", "TOPIC")...), "pending")
}

// refuses requires that a command fails with a URL and does not print the password.
func (b *bundle) refuses(code int, says, where string, flags ...string) {
	b.t.Helper()
	with := *b
	with.redis = where
	got, stdout, stderr := with.call(append(flags, "ls", "-t", "TOPIC")...)
	require.Equal(b.t, code, got, "%s: %s", where, stderr)
	require.Contains(b.t, stderr, says, where)
	require.NotContains(b.t, stdout+stderr, "secret")
}

func TestUserAndPassword(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	require.NoError(t, server.Client(t).Do(t.Context(), "ACL", "SETUSER", "ada", "on", ">se/cr@et", "~*", "&*", "+@all").Err())
	b := &bundle{t: t, topic: "t"}
	b.works("redis://ada:se%2Fcr%40et@" + server.Addr)
	b.refuses(cli.ExitError, "WRONGPASS", "redis://ada:secret@"+server.Addr)
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "redis.sock")
	redistest.Start(t, "--unixsocket", path, "--requirepass", "secret")
	b := &bundle{t: t, topic: "t"}
	b.works("unix://:secret@" + path + "?db=2")
	b.refuses(cli.ExitError, "NOAUTH", "unix://"+path)
}

func TestTLS(t *testing.T) {
	t.Parallel()
	s := redistest.StartTLS(t)
	b := &bundle{t: t, topic: "t"}
	where := "rediss://" + s.TLSAddr
	client := []string{"--tls-cert", s.Cert, "--tls-key", s.Key}
	b.works(where, append(client, "--tls-ca", s.CA)...)
	b.works(where, append(client, "--tls-ca", s.CA, "--tls-server-name", s.Name)...)
	b.works(where, append(client, "--tls-insecure")...)
	b.refuses(cli.ExitError, "unknown authority", where, client...)
	b.refuses(cli.ExitError, "not other.test", where, append(client, "--tls-ca", s.CA, "--tls-server-name", "other.test")...)
	b.refuses(cli.ExitError, "", where, "--tls-ca", s.CA)
	b.refuses(cli.ExitUsage, "go together", where, "--tls-cert", s.Cert)
	b.refuses(cli.ExitUsage, "no certificate", where, "--tls-ca", s.Key)
	b.refuses(cli.ExitError, "no such file", where, "--tls-ca", "/nowhere")
	b.refuses(cli.ExitError, "--tls-cert", where, "--tls-cert", s.Key, "--tls-key", s.Cert)
	b.refuses(cli.ExitUsage, "rediss://", "redis://"+s.Addr, "--tls-insecure")
	b.refuses(cli.ExitUsage, "rediss://", cli.EmbeddedRedis, "--tls-ca", s.CA)
	b.refuses(cli.ExitUsage, "--tls-insecure", where+"?skip_verify=true")
}

// A master and its Sentinel have different passwords.
func TestSentinel(t *testing.T) {
	t.Parallel()
	w := redistest.Sentinel(t)
	set := func(s *redistest.Server, args ...any) {
		t.Helper()
		require.NoError(t, s.Client(t).Do(t.Context(), args...).Err(), "%v", args)
	}
	set(w.Master, "ACL", "SETUSER", "ada", "on", ">secret1", "~*", "&*", "+@all")
	set(w.Sentinel, "ACL", "SETUSER", "watch", "on", ">secret2", "~*", "&*", "+@all")
	set(w.Sentinel, "SENTINEL", "SET", redistest.MasterName, "auth-user", "ada")
	set(w.Sentinel, "SENTINEL", "SET", redistest.MasterName, "auth-pass", "secret1")
	set(w.Sentinel, "ACL", "SETUSER", "default", "resetpass")
	set(w.Master, "ACL", "SETUSER", "default", "resetpass")

	b := &bundle{t: t, topic: "t"}
	host, master := w.Sentinel.Addr, "/"+redistest.MasterName
	login := "sentinel_username=watch&sentinel_password=secret2"
	b.works("redis+sentinel://ada:secret1@" + host + master + "?" + login)
	b.works("redis+sentinel://ada:secret1@unreachable.invalid:1," + host + master + "/3?" + login)
	b.works("redis+sentinel://ada:secret1@" + host + "?addr=unreachable.invalid:1&db=3&master_name=" + redistest.MasterName + "&" + login)
	b.refuses(cli.ExitError, "", "redis+sentinel://ada:secret1@"+host+master)
	b.refuses(cli.ExitError, "WRONGPASS", "redis+sentinel://ada:secret@"+host+master+"?"+login)
	b.refuses(cli.ExitUsage, "no master name", "redis+sentinel://ada:secret1@"+host+"?"+login)
	b.refuses(cli.ExitUsage, "before the host", "redis+sentinel://"+host+master+"?password=secret")
}

func TestCluster(t *testing.T) {
	t.Parallel()
	masters := redistest.Cluster(t)
	b := &bundle{t: t, topic: "t", redis: "redis+cluster://" + strings.Join(masters.Addrs(), ",")}
	b.refuses(cli.ExitUsage, "no databases", b.redis+"/1")
	b.redis = "redis+cluster://" + masters[2].Addr

	// The topics are on all masters, because they are put in braces. Only a Python peer knows one of them.
	names := []string{"a", "b", "c", "d", "e", "f"}
	for _, name := range names {
		b.fine("schedule", "-t", name, "--in", "1h", "--count", "2")
	}
	require.NoError(t, masters.Client(t).ZAdd(t.Context(), "timers_timeline:{peer}", redis.Z{Score: 4e9, Member: "x"}).Err())
	for _, m := range masters {
		require.NotEmpty(t, m.Client(t).Keys(t.Context(), "timers_timeline:*").Val(), m.Addr)
	}
	list := func(args ...string) (found []string) {
		for _, line := range objects(t, b.fine(append([]string{"topics", "-o", "json"}, args...)...)) {
			found = append(found, line["topic"].(string))
		}
		return found
	}
	require.Equal(t, names, list())
	require.Equal(t, append(names, "peer"), list("--discover"))

	node := b.start("node", "-t", "a", "-t", "b", "-t", "c")
	node.says("node runs")
	for _, name := range names[:3] {
		b.fine("schedule", "-t", name, "--id", "now")
	}
	node.lines(3)
	require.Zero(t, node.stop())
	bench := objects(t, b.fine("bench", "--n", "100"))[0]
	require.InDelta(t, 100, bench["handled"], 0)
	require.Nil(t, bench["redis_commands_per_timer"])
}

// Listings come from the replica, which may be a little behind.
func TestReadFromReplicas(t *testing.T) {
	t.Parallel()
	w := redistest.Sentinel(t)
	b := &bundle{t: t, topic: "t"}
	where := "redis+sentinel://" + w.Sentinel.Addr + "/" + redistest.MasterName
	b.works(where + "?read_from=masters")
	b.redis = where + "?read_from=replicas"
	require.Eventually(t, func() bool { return strings.Contains(b.fine("ls", "-t", "TOPIC"), "pending") }, time.Minute, 10*time.Millisecond)
	b.fine("gate", "ls")
	b.fine("topics")
	stats, err := w.Replica.Client(t).Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	for _, command := range []string{"evalsha_ro", "zscan", "sscan"} {
		require.Contains(t, stats, "cmdstat_"+command+":")
	}
}

func TestInvalidURLs(t *testing.T) {
	t.Parallel()
	b := &bundle{t: t, topic: "t"}
	for where, says := range map[string]string{
		"localhost":                                "not a URL",
		"http://x":                                 "unknown scheme",
		"redis+unix://x":                           "unknown scheme",
		"unix+sentinel://x":                        "unknown scheme",
		"redis://x/one":                            "database number",
		"redis://x?frob=1":                         "unexpected option: frob",
		"redis://ada:pw@x?frob=1":                  "unexpected option: frob",
		"redis://:secret@host:port":                "malformed URL",
		"redis://ada:se/secret@x":                  "malformed URL",
		"redis://ada:1/secret@x":                   "malformed URL",
		"redis://ada:1?secret@x":                   "malformed URL",
		"redis+cluster://x?addr=ada:secret@y":      "malformed URL",
		"redis+sentinel://ada:1/secret@x/m":        "malformed URL",
		"redis+sentinel://x,y/m/one":               "database number",
		"redis+sentinel://x/m?route_randomly=true": "from masters",
		"redis+cluster://x?read_only=true":         "from masters",
		"redis://x?read_from=replicas":             "needs a redis+sentinel",
		"redis+cluster://x?read_from=slaves":       "want replicas or masters",
		"redis://x:99999":                          `port "99999" of x:99999, want 1 to 65535`,
		"redis+sentinel://x,y:99999/m":             `port "99999" of y:99999, want 1 to 65535`,
	} {
		b.refuses(cli.ExitUsage, says, where)
	}
}
