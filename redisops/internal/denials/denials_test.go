package denials

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// topicKeys and queueKeys are the keys of the topic T and the queue T, as patterns. A user of
// the test lacks one of them.
var topicKeys = []string{
	"timers_timeline:T", "timers_payloads:T", "timers_leases:T", "timers_dead:T", "timers_hint:T", "timers_flow:T",
	"timers_keys:T", "timers_order:T", "timers_busy:T", "timers_rates:T", "timers_turns:T", "timers_control:T", "timers_once:T:*", "timers_keyed:T:*",
	"timers_runs:T", "timers_counts:T", "timers_history:T", "timers_nodes:T", "timers_reports:T", "timers_results:T:*",
	"timers_exchange:T:layout", "timers_exchange:T:swept", "timers_exchange:T:*:*",
}

var queueKeys = []string{
	"T::pending", "T::processing", "T::completed", "T::failed", "T::dlq", "T::deduplication::*",
	"T::processing:lease_deadlines", "T::processing:lease_tokens", "T::processing:lease_token_counter", "T::processing:delivery_counts",
	"T::processing:claim_result_refs", "T::processing:claim_result_ids", "T::processing:claim_result_backrefs",
	"T::wakebell:places", "T::wakebell:records", "T::wakebell:gone", "T::wakebell:hint", "T::wakebell:exchange:*",
	"T::wakebell:flow", "T::wakebell:counts", "T::wakebell:history", "T::wakebell:published:*", "T::wakebell:key:*", "T::wakebell:freed",
}

// TestCallWithoutRightWritesNothing makes each call as users that lack one key each.
func TestCallWithoutRightWritesNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, group := range []struct {
		name  string
		keys  []string
		calls map[string]call
	}{{"timers", topicKeys, timerCalls()}, {"queues", queueKeys, queueCalls()}} {
		users := map[string]*redis.Client{}
		for _, lacked := range group.keys {
			users[lacked] = userWithout(t, server, lacked)
		}
		for _, name := range slices.Sorted(maps.Keys(group.calls)) {
			t.Run(group.name+" "+name, func(t *testing.T) {
				t.Parallel()
				testDenials(t, server.Client(t), group.calls[name], strings.NewReplacer(" ", "-", "T", "t").Replace(name), users)
			})
		}
	}
}

func testDenials(t *testing.T, admin *redis.Client, c call, name string, users map[string]*redis.Client) {
	t.Helper()
	denied := 0
	for lacked, user := range users {
		topic := fmt.Sprintf("%s-%d", name, len(lacked)) + strings.Map(letters, lacked)
		do := c(newWorld(t, admin, topic), newWorld(t, user, topic))
		before := contents(t, admin, topic)
		err := do()
		after := contents(t, admin, topic)
		require.NoError(t, admin.Unlink(t.Context(), append(slices.Collect(maps.Keys(after)), "-")...).Err()) // KEYS takes longer with more
		if err == nil {
			continue
		}
		denied++
		require.ErrorIs(t, err, wakebelltype.ErrDenied, "without %q", lacked)
		for key, was := range before {
			require.Equal(t, was, after[key], "%q without %q: %v", key, lacked, err)
		}
		require.Len(t, after, len(before), "without %q: %v", lacked, err)
	}
	require.NotZero(t, denied, "the call needs no key")
	require.NoError(t, c(newWorld(t, admin, name), newWorld(t, admin, name))(), "with all rights")
}

func letters(r rune) rune {
	if r == ':' || r == '*' {
		return '-'
	}
	return r
}

// userWithout returns a client whose user has the right to all keys of topics and queues but
// one.
func userWithout(t *testing.T, server *redistest.Server, lacked string) *redis.Client {
	t.Helper()
	name := "without_" + lacked
	rights := []any{"ACL", "SETUSER", name, "reset", "on", ">secret", "+@all", "&*", "~timers_topics", "~timers_queues", "~timers_shards"}
	for _, key := range slices.Concat(topicKeys, queueKeys) {
		if key != lacked {
			rights = append(rights, "~"+strings.ReplaceAll(key, "T", "*"))
		}
	}
	require.NoError(t, server.Client(t).Do(t.Context(), rights...).Err())
	return server.Client(t, func(o *redis.Options) { o.Username, o.Password = name, "secret" })
}

// contents returns what is stored under the keys of a topic and a queue.
func contents(t *testing.T, admin *redis.Client, topic string) map[string]string {
	t.Helper()
	keys, err := admin.Keys(t.Context(), "*"+topic+":*").Result()
	require.NoError(t, err)
	more, err := admin.Keys(t.Context(), "*:"+topic).Result()
	require.NoError(t, err)
	pipe, found := admin.Pipeline(), map[string]string{}
	dumps := map[string]*redis.StringCmd{}
	for _, key := range append(keys, more...) {
		dumps[key] = pipe.Dump(t.Context(), key)
	}
	_, err = pipe.Exec(t.Context())
	require.NoError(t, err)
	for key, dump := range dumps {
		found[key] = dump.Val()
	}
	return found
}
