package queue

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// goldenStep is what redis-message-queue left in Redis after an operation.
type goldenStep struct {
	Op   string                `json:"op"`
	Time float64               `json:"redis_time_ms"`
	Keys map[string]goldenDump `json:"keys"`
}

type goldenDump struct {
	Type  string          `json:"type"`
	TTL   int64           `json:"pttl"`
	Value json.RawMessage `json:"value"`
}

func goldenSteps(t *testing.T) map[string]goldenStep {
	t.Helper()
	raw, err := os.ReadFile("../../internal/queuemessage/testdata/golden-queue.json")
	require.NoError(t, err)
	var file struct{ Steps []goldenStep }
	require.NoError(t, json.Unmarshal(raw, &file))
	steps := map[string]goldenStep{}
	for _, s := range file.Steps {
		steps[s.Op] = s
	}
	require.Equal(t, 16, len(steps)) //nolint:testifylint // Len would print them all
	return steps
}

// goldenText is a string of the dump, which has it as text or as hex.
func goldenText(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var h struct{ Hex string }
	require.NoError(t, json.Unmarshal(raw, &h))
	b, err := hex.DecodeString(h.Hex)
	require.NoError(t, err)
	return string(b)
}

func (d goldenDump) list(t *testing.T) (out []string) {
	t.Helper()
	var values []json.RawMessage
	require.NoError(t, json.Unmarshal(d.Value, &values))
	for _, v := range values {
		out = append(out, goldenText(t, v))
	}
	return out
}

func (d goldenDump) pairs(t *testing.T) map[string]string {
	t.Helper()
	var values [][2]json.RawMessage
	require.NoError(t, json.Unmarshal(d.Value, &values))
	out := map[string]string{}
	for _, v := range values {
		out[goldenText(t, v[0])] = goldenText(t, v[1])
	}
	return out
}

// patience is added to the deadlines of the dump: a second is too short for a busy
// machine.
const patience = 60

// restore writes the keys of the peer into a queue of this test. Deadlines have the
// same distance from now as in the dump, plus patience.
func restore(t *testing.T, f *fixture, s goldenStep) {
	t.Helper()
	ctx := t.Context()
	now, err := f.rdb.Time(ctx).Result()
	require.NoError(t, err)
	for key, d := range s.Keys {
		old, rest, _ := strings.Cut(key, "::")
		key = f.Name() + "::" + rest
		switch d.Type {
		case "string":
			require.NoError(t, f.rdb.Set(ctx, key, goldenText(t, d.Value), 0).Err())
		case "list":
			for _, v := range d.list(t) {
				require.NoError(t, f.rdb.RPush(ctx, key, v).Err())
			}
		case "hash":
			for field, v := range d.pairs(t) {
				require.NoError(t, f.rdb.HSet(ctx, key, field, strings.Replace(v, old+"::", f.Name()+"::", 1)).Err())
			}
		case "zset":
			for member, v := range d.pairs(t) {
				score, err := strconv.ParseFloat(v, 64)
				require.NoError(t, err)
				require.NoError(t, f.rdb.ZAdd(ctx, key, redis.Z{Member: member, Score: float64(now.UnixMilli()) + patience*(score-s.Time)}).Err())
			}
		}
		if d.TTL > 0 {
			require.NoError(t, f.rdb.PExpire(ctx, key, time.Duration(d.TTL)*time.Millisecond).Err())
		}
	}
}

// expire ends all leases of the queue.
func (f *fixture) expire(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	for i, m := range f.rdb.ZRange(ctx, f.keys.deadlines, 0, -1).Val() {
		require.NoError(t, f.rdb.ZAdd(ctx, f.keys.deadlines, redis.Z{Member: m, Score: float64(i + 1)}).Err())
	}
}

// same compares Redis with the keys of the peer, without instants, its records of
// claims and Wakebell's own keys.
func (f *fixture) same(t *testing.T, s goldenStep) {
	t.Helper()
	ctx := t.Context()
	var want []string
	held := false
	for key, d := range s.Keys {
		_, rest, _ := strings.Cut(key, "::")
		if strings.Contains(rest, "claim_result") {
			held = true
			continue
		}
		want = append(want, rest)
		key = f.Name() + "::" + rest
		switch d.Type {
		case "string":
			if !strings.HasPrefix(rest, "deduplication") {
				require.Equal(t, goldenText(t, d.Value), f.rdb.Get(ctx, key).Val(), rest)
			} else {
				require.InDelta(t, d.TTL, f.rdb.PTTL(ctx, key).Val().Milliseconds(), 60_000, rest)
			}
		case "list":
			require.Equal(t, d.list(t), f.list(t, key), rest)
		case "hash":
			pairs, found := d.pairs(t), f.rdb.HGetAll(ctx, key).Val()
			if rest == "processing:lease_tokens" { // Wakebell's have the clock too
				for field, token := range found {
					require.Regexp(t, `^[1-9]\d*(\.\d{16})?$`, token)
					found[field], _, _ = strings.Cut(token, ".")
				}
			}
			require.Equal(t, pairs, found, rest)
		case "zset":
			for member, v := range d.pairs(t) {
				require.Regexp(t, `^\d{13}\.0$`, v)
				score := f.rdb.ZScore(ctx, key, member).Val()
				require.Greater(t, score, 1e12)
				require.Zero(t, math.Mod(score, 1), "whole milliseconds")
			}
			require.EqualValues(t, len(d.pairs(t)), f.rdb.ZCard(ctx, key).Val())
		}
	}
	slices.Sort(want)
	got := f.left(t)
	if held { // the peer may keep its records of messages that are still held
		got = slices.DeleteFunc(got, func(key string) bool { return strings.Contains(key, "claim_result") })
	}
	slices.Sort(got)
	require.Equal(t, want, got)
}

// peersLease is the lease of a Python consumer on the first message in processing.
func (f *fixture) peersLease(t *testing.T) exchange.Lease {
	t.Helper()
	value := f.list(t, f.keys.processing)[0]
	token := f.rdb.HGet(t.Context(), f.keys.tokens, value).Val()
	return exchange.Lease{ID: "x", Token: exchange.Token(token + " " + value)}
}

// TestQueueGoldenSteps checks that Wakebell can continue from every state that
// Python leaves, and that the result has the bytes that Python would leave.
func TestQueueGoldenSteps(t *testing.T) {
	t.Parallel()
	steps := goldenSteps(t)
	at := func(t *testing.T, op string, o SourceOptions) *fixture {
		t.Helper()
		f := newFixture(t, redistest.Shared(t))
		restore(t, f, steps[op])
		return f.holder(o)
	}
	ack := func(t *testing.T, f *fixture, v exchange.Verdict, l exchange.Lease) {
		t.Helper()
		require.Empty(t, f.Settle(t, storetest.Verdict(v, l)).Refused)
	}
	first, second := "publish dict (dedup on) + suppressed duplicate", "claimed 1st (in handler)"

	t.Run("claim what Python published", func(t *testing.T) {
		t.Parallel()
		f := at(t, first, SourceOptions{Completed: 10})
		out, _, err := f.Publish(t.Context(), PublishOptions{}, NewMessage([]byte("again"), "a"))
		require.NoError(t, err)
		require.Equal(t, []wakebelltype.QueuePublished{{}}, out, "suppressed by Python's key")
		reply := f.Claim(t, 10)
		require.JSONEq(t, `{"b": [1, 2.5, null, true], "id": "a", "z": 1, "ü": "é\"\\/\u2028😀"}`, string(reply.Leases[0].Payload))
		require.Equal(t, "6e9759939a824ef091b325afdfa71439", reply.Leases[0].ID)
		text := "plain ü \x00\x1f text"
		_, _, err = f.Publish(t.Context(), PublishOptions{}, NewMessage([]byte(text), text))
		require.NoError(t, err)
		mine := f.list(t, f.keys.pending)[0]
		theirs := steps[second].Keys["jobs::pending"].list(t)[0]
		require.Equal(t, theirs[46:], mine[46:], "the bytes are equal except for the id")
		require.NoError(t, f.rdb.LSet(t.Context(), f.keys.pending, 0, theirs).Err())
		f.same(t, steps[second])
		ack(t, f, exchange.Ack, reply.Leases[0])
		f.same(t, steps["acked -> completed"])
	})
	t.Run("settle what Python claimed", func(t *testing.T) {
		t.Parallel()
		f := at(t, second, SourceOptions{Completed: 10})
		l := f.peersLease(t)
		require.Empty(t, f.Extend(t, time.Hour, l).Refused)
		f.same(t, steps[second])
		ack(t, f, exchange.Ack, l)
		f.same(t, steps["acked -> completed"])
	})
	t.Run("fail for good", func(t *testing.T) {
		t.Parallel()
		f := at(t, "acked -> completed", SourceOptions{Failed: 10})
		ack(t, f, exchange.Fail, f.Claim(t, 1).Leases[0])
		f.same(t, steps["handler raised -> failed"])
	})
	t.Run("reclaim what a dead consumer had", func(t *testing.T) {
		t.Parallel()
		f := at(t, "delivery 1 claimed, consumer dies", SourceOptions{MaxDeliveries: 2})
		theirs := f.peersLease(t)
		require.Empty(t, f.Claim(t, 1).Leases, "it is held")
		f.expire(t)
		l := f.Claim(t, 1).Leases[0]
		require.Equal(t, 2, l.Claims)
		f.same(t, steps["delivery 2 claimed, consumer dies"])
		require.Empty(t, f.rdb.Keys(t.Context(), f.Name()+"::*claim_result*").Val(), "the peer's records of its claim are gone")
		require.Len(t, f.Settle(t, storetest.Verdict(exchange.Ack, theirs)).Refused, 1)
		f.expire(t)
		require.Len(t, f.Claim(t, 1).DeadLettered, 1)
		f.same(t, steps["third claim: delivery_count 3 > max 2 -> dlq"])
	})
	t.Run("heartbeat", func(t *testing.T) {
		t.Parallel()
		f := at(t, "heartbeat: claimed", SourceOptions{})
		l := f.peersLease(t)
		require.Empty(t, f.Extend(t, 3*time.Second, l).Refused)
		f.same(t, steps["heartbeat: renewed once (deadline moved)"])
		ack(t, f, exchange.Ack, l)
		f.same(t, steps["heartbeat: acked"])
	})
	t.Run("without a visibility timeout", func(t *testing.T) {
		t.Parallel()
		f := at(t, "publish no dedup", SourceOptions{AtMostOnce: true})
		l := f.Claim(t, 1).Leases[0]
		f.same(t, steps["claimed without VT"])
		ack(t, f, exchange.Ack, l)
		f.same(t, steps["acked without VT"])
	})
	t.Run("what expired comes first, the oldest deadline first", func(t *testing.T) {
		t.Parallel()
		f := at(t, "3 of 4 claimed", SourceOptions{})
		f.expire(t)
		require.Equal(t, []string{"m0", "m2", "m1", "m3"}, payloads(f.Claim(t, 10).Leases), "by deadline, then by id")
	})
	t.Run("what Python reclaimed comes first", func(t *testing.T) {
		t.Parallel()
		f := at(t, "late ack of the expired first lease (no-op)", SourceOptions{})
		reply := f.Claim(t, 10)
		require.Equal(t, []string{"m2", "m1", "m3"}, payloads(reply.Leases))
		require.Equal(t, []int{2, 2, 1}, []int{reply.Leases[0].Claims, reply.Leases[1].Claims, reply.Leases[2].Claims})
	})
	t.Run("nothing to do", func(t *testing.T) {
		t.Parallel()
		f := at(t, "drain()", SourceOptions{})
		require.Empty(t, f.Claim(t, 1).Leases)
		f.same(t, steps["drain()"])
	})
}
