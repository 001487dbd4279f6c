package main

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// The schemes of several servers, as other clients write them: the plus names
// what is found at the address, the s before it says TLS. The user and the
// password are those of the servers that keep the timers.
const (
	sentinelSuffix = "+sentinel"
	clusterSuffix  = "+cluster"

	sentinelPort = "26379"
	redisPort    = "6379"
)

// replicaParameters of go-redis read from replicas, or end in a panic; timers
// are read where they are written.
var replicaParameters = []string{
	"read_only", "route_by_latency", "route_by_latency_tolerance", "route_randomly",
	"replica_only", "use_disconnected_replicas",
}

// dialOnce has a server dialled once, where the URL has no dialer_retries:
// it is tried again anyway, and five dials by themselves take half a second.
const dialOnce = 1

// dial makes a client of a URL; it does not speak to Redis yet. No error shows
// a password.
func dial(where string, t tlsFlags) (redis.UniversalClient, error) {
	scheme, rest, ok := strings.Cut(where, "://")
	if !ok {
		return nil, usagef("--redis: not a URL such as %s", defaultRedis)
	}
	base, kind := scheme, ""
	if i := strings.IndexByte(scheme, '+'); i >= 0 {
		base, kind = scheme[:i], scheme[i:]
	}
	if !slices.Contains([]string{"redis", "rediss"}, base) && (base != "unix" || kind != "") ||
		!slices.Contains([]string{"", sentinelSuffix, clusterSuffix}, kind) {
		return nil, usagef("--redis: %q is no scheme of Redis; see wakebell --help", scheme)
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

// parseServers parses a URL of which the host may be a list, h1:p1,h2:p2. All
// but the first become what go-redis calls addr parameters.
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
		return nil, errors.New("a user stands before the first host alone")
	}
	u.RawQuery = query.Encode()
	return u, nil
}

func checkParameters(query url.Values) error {
	if query.Has("skip_verify") {
		return usagef("--redis: skip_verify is said with --tls-insecure alone")
	}
	for _, name := range replicaParameters {
		if query.Has(name) {
			return usagef("--redis: %s is for reading from replicas, and timers are read where they are written", name)
		}
	}
	return nil
}

// dialSentinel reads …/MASTER[/DB], or master_name and db among the
// parameters. Those of Sentinel itself are sentinel_username and
// sentinel_password.
func dialSentinel(where string, u *url.URL, t tlsFlags) (redis.UniversalClient, error) {
	query := u.Query()
	for _, name := range []string{"username", "password"} {
		if query.Has(name) {
			return nil, usagef("--redis: %s of the servers stands before the host, of Sentinel it is sentinel_%[1]s", name)
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
		return nil, usagef("--redis: which master? Its name follows the hosts, as in redis+sentinel://host:26379/mymaster")
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
		return nil, usagef("--redis: a Cluster has no databases; nothing may follow the hosts but parameters")
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

// unreadable says what is wrong with a URL. Errors quote from it, and what
// they quote may be of a password that has a / or an @ in it: then they are
// not shown.
func unreadable(where string, u *url.URL, err error) error {
	known := 0
	if u != nil && u.User != nil {
		known = 1
	}
	if u == nil || strings.Count(where, "@") > known {
		return usagef("--redis: the URL cannot be read; write what is special in a user or a password as %%XX (@ is %%40, / is %%2F)")
	}
	return usagef("--redis: %v", err)
}
