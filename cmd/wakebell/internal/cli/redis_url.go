package cli

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/connection"
)

// The suffixes of URL schemes for several servers, as other clients use them. The
// user and the password are those of the servers that store the timers.
const (
	sentinelSuffix = "+sentinel"
	clusterSuffix  = "+cluster"

	sentinelPort = "26379"
	redisPort    = "6379"
)

// readFrom is the parameter of URLs with which listings read from replicas.
const readFrom = "read_from"

// replicaParameters are parameters of go-redis that read everything from replicas, or
// panic. Timers are only claimed from masters.
var replicaParameters = []string{
	"read_only", "route_by_latency", "route_by_latency_tolerance", "route_randomly",
	"replica_only", "use_disconnected_replicas",
}

// dialOnce is the default of dialer_retries. Commands are retried anyway, and five
// dials take half a second.
const dialOnce = 1

// connMaxLifetime is the default of conn_max_lifetime: a connection to a server that a name
// or an address has left is used for that long at most. A fifth of it is random, so that
// the connections of a process are not renewed together.
const connMaxLifetime = 5 * time.Minute

// renew sets the defaults of conn_max_lifetime and conn_max_lifetime_jitter. A negative
// lifetime, which is how go-redis reads a 0 in a URL, renews nothing.
func renew(lifetime, jitter *time.Duration) {
	*lifetime = cmp.Or(*lifetime, connMaxLifetime)
	if *lifetime > 0 {
		*jitter = cmp.Or(*jitter, *lifetime/5)
	}
}

// notice sets the defaults of dial_timeout and read_timeout of a Cluster, as
// connection.FailoverOptions does with Sentinel. A negative timeout, which go-redis reads as
// none, stays.
func notice(dial, read *time.Duration) {
	*dial, *read = cmp.Or(*dial, connection.DefaultSilence), cmp.Or(*read, connection.DefaultSilence)
}

// replicaDial is for how long a replica is dialled; then the master is asked.
const replicaDial = time.Second

// servers are the clients for a URL.
type servers struct {
	redis    redis.UniversalClient
	replicas redis.UniversalClient // nil: everything is read from masters
}

// dial returns the clients for a URL. It does not connect yet. No error contains a
// password.
func dial(where string, t tlsFlags) (servers, error) {
	u, kind, err := readURL(where, t)
	if err != nil {
		return servers{}, err
	}
	fromReplicas, err := takeReadFrom(u, kind)
	if err != nil {
		return servers{}, err
	}
	switch kind {
	case sentinelSuffix:
		return dialSentinel(where, u, t, fromReplicas)
	case clusterSuffix:
		return dialCluster(where, u, t, fromReplicas)
	}
	o, err := redis.ParseURL(u.String())
	if err != nil {
		return servers{}, unreadable(where, u, err)
	}
	if o.TLSConfig, err = t.apply(o.TLSConfig); err != nil {
		return servers{}, err
	}
	o.DialerRetries = cmp.Or(o.DialerRetries, dialOnce)
	renew(&o.ConnMaxLifetime, &o.ConnMaxLifetimeJitter)
	return servers{redis: redis.NewClient(o)}, nil
}

// takeReadFrom removes the parameter read_from, which go-redis does not know.
func takeReadFrom(u *url.URL, kind string) (fromReplicas bool, err error) {
	query := u.Query()
	if !query.Has(readFrom) {
		return false, nil
	}
	from := query.Get(readFrom)
	switch {
	case from != "replicas" && from != "masters":
		return false, Usagef("--redis: %s=%s, want replicas or masters", readFrom, from)
	case from == "replicas" && kind == "":
		return false, Usagef("--redis: %s=replicas needs a redis+sentinel or redis+cluster URL, which finds the replicas", readFrom)
	}
	query.Del(readFrom)
	u.RawQuery = query.Encode()
	return from == "replicas", nil
}

// readURL parses a URL. The kind is the suffix of its scheme.
func readURL(where string, t tlsFlags) (u *url.URL, kind string, err error) {
	scheme, rest, ok := strings.Cut(where, "://")
	if !ok {
		return nil, "", Usagef("--redis: not a URL such as %s", defaultRedis)
	}
	base := scheme
	if i := strings.IndexByte(scheme, '+'); i >= 0 {
		base, kind = scheme[:i], scheme[i:]
	}
	if !slices.Contains([]string{"redis", "rediss"}, base) && (base != "unix" || kind != "") ||
		!slices.Contains([]string{"", sentinelSuffix, clusterSuffix}, kind) {
		return nil, "", Usagef("--redis: unknown scheme %q; see wakebell --help", scheme)
	}
	if err := t.check("rediss:// URLs", base == "rediss"); err != nil {
		return nil, "", err
	}
	if u, err = parseServers(base, kind, rest); err != nil {
		return nil, "", unreadable(where, u, err)
	}
	if err := checkPorts(u); err != nil {
		return nil, "", err
	}
	return u, kind, checkParameters(u.Query())
}

// checkPorts rejects ports that no server can have.
func checkPorts(u *url.URL) error {
	for _, addr := range append([]string{u.Host}, u.Query()["addr"]...) {
		_, port, err := net.SplitHostPort(addr)
		if err != nil || port == "" {
			continue // the default port, or an error of go-redis
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return Usagef("--redis: port %q of %s, want 1 to 65535", port, addr)
		}
	}
	return nil
}

// parseServers parses a URL whose host may be a list, h1:p1,h2:p2. All hosts but the
// first become addr parameters of go-redis.
func parseServers(base, kind, rest string) (*url.URL, error) {
	if kind == "" {
		return url.Parse(base + "://" + rest)
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, tail := rest[:end], rest[end:]
	at := strings.LastIndexByte(authority, '@') + 1
	port := redisPort
	if kind == sentinelSuffix {
		port = sentinelPort
	}
	hosts := strings.Split(authority[at:], ",")
	for i, host := range hosts {
		if _, _, err := net.SplitHostPort(host); err != nil {
			hosts[i] = net.JoinHostPort(strings.Trim(host, "[]"), port)
		}
	}
	u, err := url.Parse(base + "://" + authority[:at] + hosts[0] + tail)
	if err != nil {
		return nil, err
	}
	query := u.Query()
	query["addr"] = append(hosts[1:], query["addr"]...)
	if slices.ContainsFunc(query["addr"], func(addr string) bool { return strings.Contains(addr, "@") }) {
		return nil, errors.New("only the first host can have a user")
	}
	u.RawQuery = query.Encode()
	return u, nil
}

func checkParameters(query url.Values) error {
	if query.Has("skip_verify") {
		return Usagef("--redis: skip_verify is not supported; use --tls-insecure")
	}
	for _, name := range replicaParameters {
		if query.Has(name) {
			return Usagef("--redis: %s is not supported: timers are only claimed from masters; for listings use %s=replicas", name, readFrom)
		}
	}
	return nil
}

// dialSentinel reads …/MASTER[/DB], or the parameters master_name and db. The
// parameters sentinel_username and sentinel_password are for Sentinel itself.
func dialSentinel(where string, u *url.URL, t tlsFlags, fromReplicas bool) (servers, error) {
	query := u.Query()
	for _, name := range []string{"username", "password"} {
		if query.Has(name) {
			return servers{}, Usagef("--redis: put the %s of the servers before the host; for Sentinel use sentinel_%[1]s", name)
		}
	}
	if master, db, _ := strings.Cut(strings.Trim(u.Path, "/"), "/"); master != "" {
		query.Set("master_name", master)
		u.Path = db
	}
	user, sentinelUser, sentinelPassword := u.User, query.Get("sentinel_username"), query.Get("sentinel_password")
	query.Del("sentinel_username")
	query.Del("sentinel_password")
	u.User, u.RawQuery = nil, query.Encode()
	o, err := redis.ParseFailoverURL(u.String())
	u.User = user
	if err != nil {
		return servers{}, unreadable(where, u, err)
	}
	if o.MasterName == "" {
		return servers{}, Usagef("--redis: no master name; put it after the hosts, as in redis+sentinel://host:26379/mymaster")
	}
	o.Username = user.Username()
	o.Password, _ = user.Password()
	o.SentinelUsername, o.SentinelPassword = sentinelUser, sentinelPassword
	if o.TLSConfig != nil {
		o.TLSConfig.ServerName = "" // that of each server, not of the first
	}
	if o.TLSConfig, err = t.apply(o.TLSConfig); err != nil {
		return servers{}, err
	}
	renew(&o.ConnMaxLifetime, &o.ConnMaxLifetimeJitter)
	s := servers{redis: redis.NewFailoverClient(connection.FailoverOptions(o))}
	if fromReplicas {
		r := *o
		r.ReplicaOnly, r.MaxRetries, r.DialTimeout = true, -1, replicaDial // the master is the second try
		r.DialerRetries = cmp.Or(r.DialerRetries, dialOnce)
		s.replicas = redis.NewFailoverClient(&r)
	}
	return s, nil
}

func dialCluster(where string, u *url.URL, t tlsFlags, fromReplicas bool) (servers, error) {
	if strings.Trim(u.Path, "/") != "" {
		return servers{}, Usagef("--redis: a Cluster has no databases; only parameters can follow the hosts")
	}
	o, err := redis.ParseClusterURL(u.String())
	if err != nil {
		return servers{}, unreadable(where, u, err)
	}
	if o.TLSConfig != nil {
		o.TLSConfig.ServerName = "" // that of each server, not of the first
	}
	if o.TLSConfig, err = t.apply(o.TLSConfig); err != nil {
		return servers{}, err
	}
	o.DialerRetries = cmp.Or(o.DialerRetries, dialOnce)
	renew(&o.ConnMaxLifetime, &o.ConnMaxLifetimeJitter)
	notice(&o.DialTimeout, &o.ReadTimeout)
	s := servers{redis: redis.NewClusterClient(o)}
	if fromReplicas {
		r := *o
		r.ReadOnly, r.DialTimeout = true, replicaDial // the master is the second try
		s.replicas = redis.NewClusterClient(&r)
	}
	return s, nil
}

// unreadable returns the error for a malformed URL. Parse errors quote parts of the
// URL, which can be parts of a password that contains a / or an @: then they are
// not shown.
func unreadable(where string, u *url.URL, err error) error {
	known := 0
	if u != nil && u.User != nil {
		known = 1
	}
	if u == nil || strings.Count(where, "@") > known {
		return Usagef("--redis: malformed URL; escape special characters of the user and the password as %%XX (@ is %%40, / is %%2F)")
	}
	return Usagef("--redis: %v", err)
}
