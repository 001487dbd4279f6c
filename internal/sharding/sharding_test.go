package sharding_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/internal/sharding"
)

// The test vectors of docs/keys.md: clients in other languages compute the same.
func TestHashHasDocumentedValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint64{
		"":         0xefd01f60ba992926,
		"a":        0x82a2a958a9bece5b,
		"inv-42":   0xef9b1046a830f112,
		"Zürich":   0x24b22821293c05d0,
		"\x00\xff": 0xacb64f88d28b68b8,
	} {
		require.Equal(t, strconv.FormatUint(want, 16), strconv.FormatUint(sharding.Hash(text), 16), "%q", text)
	}
}

func TestIDsSpreadEvenlyOverShards(t *testing.T) {
	t.Parallel()
	const ids, shards = 1_000_000, 16
	for kind, id := range map[string]func(int) string{
		"counting": strconv.Itoa,
		"prefixed": func(i int) string { return "customer-" + strconv.Itoa(i) + ":invoice" },
		"uuids": func(i int) string {
			return uuid.NewSHA1(uuid.NameSpaceOID, []byte(strconv.Itoa(i))).String()
		},
	} {
		var counts [shards]int
		for i := range ids {
			counts[sharding.ShardOf(id(i), "", shards)]++
		}
		for shard, n := range counts {
			require.InEpsilon(t, ids/shards, n, 0.02, "%s ids, shard %d", kind, shard)
		}
	}
}

func TestTimersOfKeyShareShard(t *testing.T) {
	t.Parallel()
	first := sharding.ShardOf("a", "customer-7", 16)
	for i := range 100 {
		require.Equal(t, first, sharding.ShardOf(strconv.Itoa(i), "customer-7", 16))
	}
	require.Equal(t, sharding.ShardOf("customer-7", "", 16), first)
	require.Zero(t, sharding.ShardOf("a", "customer-7", 1))
}

func TestNamesOfShardsAreReversible(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		topic := rapid.OneOf(rapid.StringMatching(`[a-z~0-9]{1,12}`), rapid.StringN(1, 20, 40)).Draw(t, "topic")
		n := rapid.IntRange(2, sharding.MaxShards).Draw(t, "n")
		k := rapid.IntRange(0, n-1).Draw(t, "k")
		name := sharding.Name(topic, n, k)
		gotTopic, gotN, gotK := sharding.Split(name)
		require.Equal(t, topic, gotTopic)
		require.Equal(t, n, gotN)
		require.Equal(t, k, gotK)
		require.True(t, sharding.Reserved(name))
		require.LessOrEqual(t, len(name), len(topic)+sharding.MaxSuffix)

		entry, where := sharding.Placed(sharding.Place("17-3", name), topic)
		require.Equal(t, "17-3", entry)
		require.Equal(t, name, where)
	})
}

func TestNamesThatAreNotOfShards(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"orders", "orders~4", "orders~4~4", "orders~1~0", "orders~04~1", "orders~4~-1", "orders~4~1~", "~4~1",
		"orders~257~0", "orders~4~+1", "orders~99999999999999999999~1", "~", "~~", "",
	} {
		require.False(t, sharding.Reserved(name), name)
		require.Equal(t, name, sharding.Topic(name))
	}
	require.Equal(t, "orders", sharding.Name("orders", 1, 0))
	require.Equal(t, []string{"orders"}, sharding.Names("orders", 0))
	require.Equal(t, "17-3", sharding.Place("17-3", "orders"))
}

func TestLayoutIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	l := sharding.Layout{Shards: 16, From: 4, Moving: true, Since: 1700000000000, Keyed: true}
	require.Equal(t, `{"shards":16,"from":4,"moving":true,"since":1700000000000,"keyed":true}`, l.Text())
	read, err := sharding.Read(l.Text())
	require.NoError(t, err)
	require.Equal(t, l, read)

	for _, broken := range []string{"", "{", "{}", `{"shards":257}`, `{"shards":-1}`, `{"shards":4,"from":-1}`, `{"shards":"4"}`, strings.Repeat("x", 100)} {
		_, err := sharding.Read(broken)
		require.Error(t, err, broken)
	}
}

func TestLayoutNamesPhysicalTopics(t *testing.T) {
	t.Parallel()
	var plain sharding.Layout
	require.True(t, plain.Plain())
	require.Equal(t, []string{"t"}, plain.All("t"))
	require.Equal(t, "t", plain.Shard("t", "id", "key"))

	moving := sharding.Layout{Shards: 2, From: 1, Moving: true}
	require.False(t, moving.Plain())
	require.Equal(t, []string{"t~2~0", "t~2~1", "t"}, moving.All("t"))
	require.Equal(t, []int{1}, moving.Others())

	back := sharding.Layout{Shards: 1, From: 2, Moving: true}
	require.False(t, back.Plain())
	require.Equal(t, []string{"t", "t~2~0", "t~2~1"}, back.All("t"))

	announced := plain.Announced(2, time.UnixMilli(5))
	require.Equal(t, sharding.Layout{To: 2, Since: 5}, announced)
	require.False(t, announced.Plain())
	require.Equal(t, "t", announced.Shard("t", "id", ""))
	require.Equal(t, []string{"t", "t~2~0", "t~2~1"}, announced.All("t"))
	require.Equal(t, sharding.Layout{Shards: 2, From: 1, Moving: true, Since: 7}, announced.Next(2, time.UnixMilli(7)))
}

func TestOldShardsAreHandledForWhile(t *testing.T) {
	t.Parallel()
	ended := time.UnixMilli(1700000000000)
	moving := sharding.Layout{Shards: 2, From: 1, Moving: true}
	done := moving.Settled(ended)
	require.Equal(t, sharding.Layout{Shards: 2, From: 1, Since: 1700000000000}, done)
	require.Equal(t, []string{"t~2~0", "t~2~1"}, done.All("t"))
	require.True(t, done.Lingers(ended.Add(sharding.Linger-time.Millisecond)))
	require.False(t, done.Lingers(ended.Add(sharding.Linger)))
	require.Equal(t, []string{"t~2~0", "t~2~1", "t"}, done.Polled("t", ended))
	require.Equal(t, []string{"t~2~0", "t~2~1"}, done.Polled("t", ended.Add(sharding.Linger)))
	require.Equal(t, []string{"t~2~0", "t~2~1", "t"}, moving.Polled("t", ended.Add(time.Hour)))
	require.Equal(t, []string{"t"}, sharding.Layout{}.Polled("t", ended))
}

// TestPartsOfLimitNeverExceedIt checks the parts of a limit during a change of the number of
// shards: their sum is at most the limit, and when nothing moves the limit is used.
func TestPartsOfLimitNeverExceedIt(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_000)
	rapid.Check(t, func(t *rapid.T) {
		from, to := rapid.IntRange(1, 16).Draw(t, "from"), rapid.IntRange(1, 16).Draw(t, "to")
		limit := rapid.IntRange(max(from, to), 300).Draw(t, "limit")
		busy := rapid.IntRange(0, limit).Draw(t, "busy")
		sum := func(l sharding.Layout, role sharding.Role) (total int) {
			for _, p := range l.Parts("t", now) {
				if p.Busy = busy; p.Role == role {
					total += max(p.Share(limit), 0)
				}
			}
			return total
		}
		before := sharding.Layout{Shards: from}.Announced(to, now)
		moving := before.Resharded(to, now)
		for _, l := range []sharding.Layout{before, moving} {
			leaving, arriving := sum(l, sharding.Leaving), sum(l, sharding.Arriving)
			if from == to {
				continue
			}
			require.LessOrEqual(t, max(leaving, busy)+arriving, limit)
			require.Positive(t, leaving)
		}
		if from == to {
			return
		}
		settled := moving.Settled(now)
		require.Zero(t, sum(settled, sharding.Resting))
		if to > 1 {
			require.Equal(t, limit/to*to, sum(settled, sharding.Settled))
		}
		for name, p := range settled.Parts("t", now) {
			require.Equal(t, p.Role == sharding.Resting, p.Share(limit) < 0, name)
			if p.Role == sharding.Settled {
				require.Equal(t, to, p.Slower(), "the rate of a topic is not divided by shards without timers")
			}
		}
	})
}

// TestLayoutHasNumbersOfShardsOfDay checks with which numbers of shards the answers to
// calls are looked for.
func TestLayoutHasNumbersOfShardsOfDay(t *testing.T) {
	t.Parallel()
	at := func(hours int) time.Time { return time.UnixMilli(1700000000000).Add(time.Duration(hours) * time.Hour) }
	require.Empty(t, sharding.Layout{}.Answered(at(0)))
	l := sharding.Layout{}.Announced(4, at(0))
	require.Equal(t, []int{1, 4}, l.Answered(at(0)))
	l = l.Resharded(4, at(1))
	require.Equal(t, []int{4, 1}, l.Answered(at(100)), "while timers move")
	l = l.Settled(at(2))
	require.Equal(t, []int{4, 1}, l.Answered(at(25)))
	require.Empty(t, l.Answered(at(26)), "all answers of one shard have expired")

	l = l.Announced(8, at(10)).Resharded(8, at(10)).Settled(at(11))
	require.Equal(t, []int{8, 4, 1}, l.Answered(at(12)))
	l = l.Announced(4, at(12)).Resharded(4, at(12)).Settled(at(13))
	require.Equal(t, []int{4, 8, 1}, l.Answered(at(14)), "each number once")
	read, err := sharding.Read(l.Text())
	require.NoError(t, err)
	require.Equal(t, l, read)
	require.Equal(t, []int{4, 8, 1}, l.Answered(at(33)))
	require.Equal(t, []int{4, 8}, l.Answered(at(36)))
	require.Empty(t, l.Answered(at(37)))
	l = l.Resharded(2, at(40))
	require.Empty(t, l.Past, "numbers are forgotten with their answers")

	l.Past = "x 3 @ 5@x 999@1700000000000 7@" + strconv.FormatInt(at(40).UnixMilli(), 10)
	require.Equal(t, []int{2, 4, 7}, l.Answered(at(41)), "what cannot be read is left out")
}
