package cli

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// The suffixes of URL schemes for several servers, as other clients use them. The
// user and the password are those of the servers that store the timers.
const (
	sentinelSuffix = "+sentinel"
	clusterSuffix  = "+cluster"

	sentinelPort = "26379"
	redisPort    = "6379"
)

// replicaParameters are parameters of go-redis that read from replicas, or panic.
// Timers are only read from masters.
var replicaParameters = []string{
	"read_only", "route_by_latency", "route_by_latency_tolerance", "route_randomly",
	"replica_only", "use_disconnected_replicas",
}

// dialOnce is the default of dialer_retries. Commands are retried anyway, and five
// dials take half a second.
const dialOnce = 1

// dial returns a client for a URL. It does not connect yet. No error contains a
// password.
func dial(where string, t tlsFlags) (redis.UniversalClient, error) {
	scheme, rest, ok := strings.Cut(where, "://")
	if !ok {
		return nil, Usagef("--redis: not a URL such as %s", defaultRedis)
	}
	base, kind := scheme, ""
	if i := strings.IndexByte(scheme, '+'); i >= 0 {
		base, kind = scheme[:i], scheme[i:]
	}
	if !slices.Contains([]string{"redis", "rediss"}, base) && (base != "unix" || kind != "") ||
		!slices.Contains([]string{"", sentinelSuffix, clusterSuffix}, kind) {
		return nil, Usagef("--redis: unknown scheme %q; see wakebell --help", scheme)
	}
	if err := t.check("rediss:// URLs", base == "rediss"); err != nil {
		return nil, err
	}
	u, err := parseServers(base, kind, rest)
	if err != nil {
		return nil, unreadable(where, u, err)
	}
	if err := checkParameters(u.Query()); err != nil {
		return nil, err
	}
	switch kind {
	case sentinelSuffix:
		return dialSentinel(where, u, t)
	case clusterSuffix:
		return dialCluster(where, u, t)
	}
	o, err := redis.ParseURL(u.String())
	if err != nil {
		return nil, unreadable(where, u, err)
	}
	if o.TLSConfig, err = t.apply(o.TLSConfig); err != nil {
		return nil, err
	}
	o.DialerRetries = cmp.Or(o.DialerRetries, dialOnce)
	return redis.NewClient(o), nil
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
			return Usagef("--redis: %s is not supported: timers are only read from masters", name)
		}
	}
	return nil
}

// dialSentinel reads …/MASTER[/DB], or the parameters master_name and db. The
// parameters sentinel_username and sentinel_password are for Sentinel itself.
func dialSentinel(where string, u *url.URL, t tlsFlags) (redis.UniversalClient, error) {
	query := u.Query()
	for _, name := range []string{"username", "password"} {
		if query.Has(name) {
			return nil, Usagef("--redis: put the %s of the servers before the host; for Sentinel use sentinel_%[1]s", name)
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
		return nil, unreadable(where, u, err)
	}
	if o.MasterName == "" {
		return nil, Usagef("--redis: no master name; put it after the hosts, as in redis+sentinel://host:26379/mymaster")
	}
	o.Username = user.Username()
	o.Password, _ = user.Password()
	o.SentinelUsername, o.SentinelPassword = sentinelUser, sentinelPassword
	if o.TLSConfig != nil {
		o.TLSConfig.ServerName = "" // that of each server, not of the first
	}
	if o.TLSConfig, err = t.apply(o.TLSConfig); err != nil {
		return nil, err
	}
	o.DialerRetries = cmp.Or(o.DialerRetries, dialOnce)
	return redis.NewFailoverClient(o), nil
}

func dialCluster(where string, u *url.URL, t tlsFlags) (redis.UniversalClient, error) {
	if strings.Trim(u.Path, "/") != "" {
		return nil, Usagef("--redis: a Cluster has no databases; only parameters can follow the hosts")
	}
	o, err := redis.ParseClusterURL(u.String())
	if err != nil {
		return nil, unreadable(where, u, err)
	}
	if o.TLSConfig != nil {
		o.TLSConfig.ServerName = "" // that of each server, not of the first
	}
	if o.TLSConfig, err = t.apply(o.TLSConfig); err != nil {
		return nil, err
	}
	o.DialerRetries = cmp.Or(o.DialerRetries, dialOnce)
	return redis.NewClusterClient(o), nil
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
