package doctor

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/audit"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// fixture is a store and a topic of its own.
type fixture struct {
	*timers.Timers
	rdb   *redis.Client
	topic string
	key   timers.TopicKeys
}

func newFixture(t testing.TB, rdb *redis.Client) *fixture {
	t.Helper()
	rdb.AddHook(storetest.Contract(t, lua, storetest.OfTopic))
	s, err := timers.New(rdb, wakebelltype.Keys{})
	require.NoError(t, err)
	s.Audit, err = audit.Open(rdb, wakebelltype.AuditConfig{}, nil)
	require.NoError(t, err)
	return (&fixture{Timers: s, rdb: rdb}).on(redistest.Name(t))
}

// on returns a fixture of the same store with another topic.
func (f *fixture) on(topic string) *fixture {
	return &fixture{f.Timers, f.rdb, topic, f.Keys().Of(topic)}
}

// due schedules timers that are due now.
func (f *fixture) due(t testing.TB, ids ...string) {
	t.Helper()
	for _, id := range ids {
		_, err := f.Schedule(t.Context(), f.topic, timers.Entry{ID: id, Payload: []byte("x"), At: time.Now().Add(-time.Hour)})
		require.NoError(t, err)
	}
}

// makeDead makes the first timer a dead letter.
func (f *fixture) makeDead(t testing.TB) {
	t.Helper()
	src := f.Source(f.topic, timers.SourceOptions{})
	r := &exchange.Request{Incarnation: "x", Sequence: 1, Want: 1, LeaseTTL: time.Minute}
	reply, err := src.Exchange(t.Context(), r)
	require.NoError(t, err)
	settle := []exchange.Settlement{storetest.Verdict(exchange.DeadLetter, reply.Leases[0])}
	_, err = src.Exchange(t.Context(), &exchange.Request{Incarnation: "x", Sequence: 2, Settle: settle})
	require.NoError(t, err)
}

// diagnose returns the findings on the fixture's topic by check, and requires one
// each.
func (f *fixture) diagnose(t testing.TB) map[string]wakebelltype.Finding {
	t.Helper()
	list, err := Diagnose(t.Context(), f.Timers, f.topic)
	require.NoError(t, err)
	found := map[string]wakebelltype.Finding{}
	var order []string
	for _, one := range list {
		found[one.Check] = one
		order = append(order, one.Check)
		require.NotEmpty(t, one.Found, one.Check)
		if one.Grade == wakebelltype.GradeWarn || one.Grade == wakebelltype.GradeBad {
			require.NotEmpty(t, one.Do, one.Check)
		}
	}
	require.Equal(t, Checks(), order)
	return found
}

// everything returns all that the server stores, byte by byte.
func (f *fixture) everything(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, key := range f.rdb.Keys(t.Context(), "*").Val() {
		all[key] = f.rdb.Dump(t.Context(), key).Val()
	}
	return all
}

// TestDiagnoseHealthyRedis checks that all findings of a healthy server are good,
// and that the server is unchanged.
func TestDiagnoseHealthyRedis(t *testing.T) {
	t.Parallel()
	w := redistest.Sentinel(t, "--appendonly", "yes", "--min-replicas-to-write", "1")
	f := newFixture(t, w.Client(t))
	f.due(t, "a", "b", "c")
	f.makeDead(t)
	require.NoError(t, f.rdb.Persist(t.Context(), f.key.Hint).Err()) // otherwise it may expire meanwhile
	before := f.everything(t)
	for check, found := range f.diagnose(t) {
		require.Equal(t, wakebelltype.GradeGood, found.Grade, "%s: %s", check, found.Found)
		require.Empty(t, found.Do)
		require.Empty(t, found.Server)
	}
	require.Equal(t, before, f.everything(t))
}

// TestDiagnoseFindsFaults checks that each fault is found by its check and named in
// the finding.
func TestDiagnoseFindsFaults(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFixture(t, server.Client(t))
	ctx := t.Context()
	_, err := f.Schedule(ctx, f.topic, timers.Entry{ID: "a", Payload: []byte("x"), In: time.Hour})
	require.NoError(t, err)
	require.NoError(t, f.rdb.Del(ctx, f.key.Hint).Err()) // it would expire meanwhile
	set := func(name, value string) func() {
		return func() { require.NoError(t, f.rdb.ConfigSet(ctx, name, value).Err()) }
	}
	do := func(args ...any) func() {
		return func() { require.NoError(t, f.rdb.Do(ctx, args...).Err(), "%v", args) }
	}
	for _, c := range []struct {
		name   string
		harm   func()
		check  string
		grade  wakebelltype.Grade
		says   string
		repair func()
	}{
		{"fine", func() {}, "orders", wakebelltype.GradeGood, "none", func() {}},
		{"nothing kept", func() {}, "persistence", wakebelltype.GradeBad, "timers are lost when Redis restarts", func() {}},
		{"snapshots", set("save", "3600 1"), "persistence", wakebelltype.GradeWarn, "snapshots only", set("save", "")},
		{"no sync", func() { set("appendonly", "yes")(); set("appendfsync", "no")() }, "persistence", wakebelltype.GradeWarn, "appendfsync no", set("appendfsync", "everysec")},
		{"no replica", func() {}, "replicas", wakebelltype.GradeWarn, "none", func() {}},
		{"evicts, unbounded", set("maxmemory-policy", "allkeys-lru"), "eviction", wakebelltype.GradeWarn, "no maxmemory", func() {}},
		{"evicts", set("maxmemory", "100mb"), "eviction", wakebelltype.GradeBad, "allkeys-lru: Redis drops timers", func() {}},
		{"evicts marks", set("maxmemory-policy", "volatile-ttl"), "eviction", wakebelltype.GradeWarn, "marks of Once", set("maxmemory-policy", "noeviction")},
		{"room", func() {}, "memory", wakebelltype.GradeGood, "of 100.0 MiB", func() {}},
		{"full", set("maxmemory", "1mb"), "memory", wakebelltype.GradeBad, "of 1.0 MiB", set("maxmemory", "0")},
		{"moved", do("HSET", f.key.Leaving(), "1", "x"), "moves", wakebelltype.GradeWarn, "on their way to another Redis", do("DEL", f.key.Leaving())},
		{"orphans", do("HSET", f.key.Payloads, "gone", "x"), "orphans", wakebelltype.GradeWarn, "1 payloads without a timer", do("HDEL", f.key.Payloads, "gone")},
		{"records", do("HSET", f.key.Leases, "gone", "x"), "orphans", wakebelltype.GradeWarn, "1 lease records without", do("HDEL", f.key.Leases, "gone")},
		{"bare", do("ZADD", f.key.Timeline, "9e9", "bare"), "orphans", wakebelltype.GradeWarn, "1 timers without a payload", do("ZREM", f.key.Timeline, "bare")},
		{"lost timers", f.many(t, "HSET", f.key.Payloads), "orphans", wakebelltype.GradeBad, "101 payloads without a timer", f.many(t, "HDEL", f.key.Payloads)},
		{"lost payloads", f.many(t, "ZADD", f.key.Timeline), "orphans", wakebelltype.GradeBad, "101 timers without a payload", f.many(t, "ZREM", f.key.Timeline)},
		{"type", do("SET", f.key.Dead, "x"), "types", wakebelltype.GradeBad, "holds a string, want stream", func() {}},
		{"no sweep", func() {}, "orphans", wakebelltype.GradeGood, "none", do("DEL", f.key.Dead)},
		{"wrong payloads", func() { do("RENAME", f.key.Payloads, "kept")(); do("SET", f.key.Payloads, "x")() }, "orphans", wakebelltype.GradeUnknown, "wrong type", func() { do("DEL", f.key.Payloads)(); do("RENAME", "kept", f.key.Payloads)() }},
		{"mangled", do("HSET", f.key.Control, "lease_ttl", "soon"), "orders", wakebelltype.GradeBad, "lease_ttl", do("DEL", f.key.Control)},
		{"paused", do("HSET", f.key.Control, "paused", "1", "by", "ada"), "orders", wakebelltype.GradeWarn, "paused by ada", do("DEL", f.key.Control)},
		{"tuned", do("HSET", f.key.Control, "max_attempts", "7"), "orders", wakebelltype.GradeGood, "overrides", do("DEL", f.key.Control)},
	} {
		c.harm()
		keys := f.everything(t)
		found := f.diagnose(t)[c.check]
		require.Equal(t, c.grade, found.Grade, "%s: %s", c.name, found.Found)
		require.Contains(t, found.Found, c.says, c.name)
		require.Equal(t, keys, f.everything(t), "%s: the fault is found, not removed", c.name)
		c.repair()
	}
}

// many returns a function that adds 101 entries to a key, or removes them.
func (f *fixture) many(t *testing.T, command, key string) func() {
	return func() {
		args := []any{command, key}
		for i := range 101 {
			switch id := fmt.Sprint("id", i); command {
			case "HSET":
				args = append(args, id, "x")
			case "ZADD":
				args = append(args, "9e9", id)
			default:
				args = append(args, id)
			}
		}
		require.NoError(t, f.rdb.Do(t.Context(), args...).Err())
	}
}

func TestDiagnoseReplica(t *testing.T) {
	t.Parallel()
	w := redistest.Sentinel(t)
	f := newFixture(t, w.Replica.Client(t))
	found := f.diagnose(t)
	require.Equal(t, wakebelltype.GradeBad, found["replicas"].Grade)
	require.Contains(t, found["replicas"].Found, "slave")
	require.Equal(t, wakebelltype.GradeBad, found["scripts"].Grade)
	require.Contains(t, found["scripts"].Found, "READONLY")

	g := newFixture(t, w.Client(t))
	require.Contains(t, g.diagnose(t)["replicas"].Found, "min-replicas-to-write 0")
	w.Replica.Kill()
	require.Eventually(t, func() bool { return strings.HasPrefix(g.diagnose(t)["replicas"].Found, "none") }, 30*time.Second, 50*time.Millisecond)
}

// TestDiagnoseWithoutRedis checks that a server that does not answer causes
// findings, not an error, within a short time.
func TestDiagnoseWithoutRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--requirepass", "secret")
	for says, opt := range map[string]func(*redis.Options){
		"authentication": func(*redis.Options) {},
		"WRONGPASS":      func(o *redis.Options) { o.Password = "wrong" },
		"refused":        func(o *redis.Options) { o.Addr = "127.0.0.1:1" },
	} {
		found := newFixture(t, server.Client(t, storetest.NoRetries, opt)).diagnose(t)
		require.Equal(t, wakebelltype.GradeBad, found["reachable"].Grade)
		require.Contains(t, strings.ToLower(found["reachable"].Found), strings.ToLower(says))
		for _, check := range Checks()[1:] {
			require.Equal(t, wakebelltype.GradeUnknown, found[check].Grade, check)
		}
	}
	_, err := Diagnose(t.Context(), newFixture(t, server.Client(t)).Timers, "")
	require.ErrorIs(t, err, wakebelltype.ErrInvalid)
}

func TestDiagnoseCluster(t *testing.T) {
	t.Parallel()
	masters := redistest.Cluster(t)
	rdb := masters.Client(t)
	s, err := timers.New(rdb, wakebelltype.Keys{})
	require.NoError(t, err)
	for _, topic := range []string{"a", "b", "c"} {
		_, err := s.Schedule(t.Context(), topic, timers.Entry{ID: "x"})
		require.NoError(t, err)
	}
	list, err := Diagnose(t.Context(), s, "a", "b", "c")
	require.NoError(t, err)
	require.Len(t, list, 3*len(serverChecks)+1+3*len(topicChecks))
	servers := map[string]int{}
	for _, f := range list {
		if f.Topic == "" {
			if f.Check == ownersCheck {
				continue
			}
			servers[f.Server]++
			continue
		}
		require.Equal(t, wakebelltype.GradeGood, f.Grade, "%s: %s", f.Check, f.Found)
	}
	for _, addr := range masters.Addrs() {
		require.Equal(t, len(serverChecks), servers[addr])
	}

	list, err = Diagnose(t.Context(), s, "}") // its brace ends the hash tag
	require.NoError(t, err)
	for _, f := range list[len(list)-len(topicChecks):] {
		if f.Check == "slots" {
			require.Equal(t, wakebelltype.GradeBad, f.Grade)
			require.Contains(t, f.Do, "HashTag")
		} else {
			require.Equal(t, wakebelltype.GradeUnknown, f.Grade, f.Check)
		}
	}
}

// TestDiagnoseFindsKeysWithoutTopic checks that keys that stay are found if their topic is
// neither listed nor has timers, and that those of others are none.
func TestDiagnoseFindsKeysWithoutTopic(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Start(t).Client(t))
	f.due(t, "a")
	ctx := t.Context()
	require.NoError(t, f.rdb.ZAdd(ctx, "timers_timeline:python", redis.Z{Score: 1, Member: "a"}).Err())
	require.NoError(t, f.rdb.HSet(ctx, "timers_payloads:python", "a", "x").Err())
	require.NoError(t, f.rdb.Set(ctx, "timers_hint:gone", "expires", time.Minute).Err())
	require.NoError(t, f.rdb.Set(ctx, "other:gone", "x", 0).Err())
	require.Equal(t, wakebelltype.GradeGood, f.diagnose(t)[ownersCheck].Grade)
	require.NoError(t, f.rdb.HSet(ctx, "timers_leases:gone", "a", "x").Err())
	require.NoError(t, f.rdb.HSet(ctx, "timers_control:other", "paused", "1").Err())
	found := f.diagnose(t)[ownersCheck]
	require.Equal(t, wakebelltype.GradeWarn, found.Grade)
	require.Equal(t, "2 topics that are not listed and have no timers have keys: timers_control, timers_leases", found.Found)
}

// TestRightsOfManyTopics checks that a right that is missing for one topic is found although
// not all rights are asked for each topic.
func TestRightsOfManyTopics(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := server.Client(t)
	args := []any{"ACL", "SETUSER", "some", "on", ">secret", "&*", "+@all"}
	var topics []string
	for i := range wholeRights + 3 {
		topics = append(topics, fmt.Sprintf("t%02d", i))
	}
	last := topics[len(topics)-1]
	for _, topic := range topics[:len(topics)-1] {
		args = append(args, "~timers_*:"+topic+"*")
	}
	args = append(args, "~timers_topics", "~timers_shards", "~timers_joins", "~timers_audit", "%R~timers_*:"+last+"*")
	require.NoError(t, admin.Do(t.Context(), args...).Err())
	f := newFixture(t, server.Client(t, storetest.NoRetries, func(o *redis.Options) { o.Username, o.Password = "some", "secret" }))
	list, err := Diagnose(t.Context(), f.Timers, topics...)
	require.NoError(t, err)
	for _, one := range list {
		switch {
		case one.Check != "rights":
		case one.Topic == last:
			require.Equal(t, wakebelltype.GradeBad, one.Grade, one.Found)
			require.Contains(t, one.Found, fmt.Sprintf("ZADD ZREM on %q", "timers_timeline:"+last), "all of its rights are asked")
		default:
			require.Equal(t, wakebelltype.GradeGood, one.Grade, one.Found)
		}
	}
}

func TestOldVersions(t *testing.T) {
	t.Parallel()
	for version, old := range map[string]bool{"5.0.14": true, "6.0.9": true, "6.2.0": false, "7.0.15": false, "10.1": false, "new": false} {
		require.Equal(t, old, tooOld(version), version)
	}
}

func TestClocksThatDiffer(t *testing.T) {
	t.Parallel()
	rdb, m := redistest.Embedded(t)
	f := newFixture(t, rdb)
	m.SetTime(time.Now().Add(-time.Minute))
	found := f.diagnose(t)["clock"]
	require.Equal(t, wakebelltype.GradeWarn, found.Grade)
	require.Regexp(t, `Redis is (59|6\d)\d+\.\d+ ms behind this machine`, found.Found)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	list, err := Diagnose(ctx, f.Timers, f.topic)
	require.NoError(t, err)
	require.Len(t, list, len(Checks()))
}
