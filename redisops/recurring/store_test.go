package recurring

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/redisops/shards"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// fixture is a store of recurring schedules under keys of its own, and a topic for
// their runs.
type fixture struct {
	*Store
	t     testing.TB
	rdb   redis.UniversalClient
	topic string
}

func newFixture(t testing.TB, rdb redis.UniversalClient) *fixture {
	t.Helper()
	rdb.AddHook(storetest.Contract(t, lua, storetest.OfTopic))
	name := fmt.Sprintf("{%s-%x}", t.Name(), rand.Uint64())
	s, err := timers.New(rdb, wakebelltype.Keys{Beat: name + ":"})
	require.NoError(t, err)
	return &fixture{New(shards.New(s)), t, rdb, name}
}

// onEach runs a test on a real Redis, on the embedded one, and on a Cluster, in the slot of
// the topic.
func onEach(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	storetest.OnEach(t, func(t testing.TB, rdb *redis.Client) *fixture {
		t.Helper()
		return newFixture(t, rdb)
	}, test)
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		test(t, newFixture(t, redistest.SharedCluster(t)))
	})
}

func raw(text string) recur.Raw {
	return recur.Raw{Definition: []byte("d" + text), Meta: []byte("m" + text), Ours: []byte("o" + text)}
}

func (f *fixture) put(name string, found, raw recur.Raw) {
	f.t.Helper()
	require.NoError(f.t, f.Put(f.t.Context(), name, found, raw, time.Now().Unix()))
}

func (f *fixture) load(name string) recur.Raw {
	f.t.Helper()
	all, err := f.Load(f.t.Context(), name)
	require.NoError(f.t, err)
	return all[0]
}

func (f *fixture) score(name string) float64 {
	f.t.Helper()
	return f.rdb.ZScore(f.t.Context(), f.schedule(), f.entry(name)).Val()
}

// firing returns a firing of an entry with a run on the fixture's topic.
func (f *fixture) firing(name, old, id string) Firing {
	return Firing{
		Name: name, Raw: raw(old), Meta: []byte("meta"), Ours: []byte("ours"), Score: 4102444800, Topic: f.topic,
		Runs: []Run{{Topic: f.topic, ID: id, Payload: []byte("payload"), At: time.Unix(1700000000, 0)}},
	}
}

func (f *fixture) fire(token string, dead Lock, firings ...Firing) FireReply {
	f.t.Helper()
	reply, err := f.Fire(f.t.Context(), token, dead, firings)
	require.NoError(f.t, err)
	return reply
}

// timers returns the ids in the fixture's topic.
func (f *fixture) ids() []string {
	f.t.Helper()
	k := f.timers.Keys().Of(f.topic)
	ids := f.rdb.ZRange(f.t.Context(), k.Timeline, 0, -1).Val()
	require.Len(f.t, ids, int(f.rdb.HLen(f.t.Context(), k.Payloads).Val()))
	return ids
}

func TestBeatFire(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.put("a", recur.Raw{}, raw("1"))
		f.put("changed", recur.Raw{}, raw("2"))
		f.put("early", recur.Raw{}, raw("1"))
		f.rdb.ZAdd(t.Context(), f.schedule(), redis.Z{Score: 5, Member: f.entry("gone")})
		f.rdb.Set(t.Context(), f.entry("odd"), "x", 0)
		early := f.firing("early", "1", "early@1")
		early.Due = time.Now().Add(time.Hour)
		reply := f.fire("", Lock{}, f.firing("a", "1", "a@1"), f.firing("changed", "1", "changed@1"), early,
			f.firing("gone", "1", "gone@1"), f.firing("odd", "1", "odd@1"))
		require.Equal(t, []Outcome{Fired, Changed, Early, Gone, Unreadable}, reply.Outcomes)
		require.Equal(t, map[int]recur.Raw{1: raw("2")}, reply.Found)
		require.Equal(t, []string{"a@1"}, f.ids())
		require.Equal(t, recur.Raw{Definition: []byte("d1"), Meta: []byte("meta"), Ours: []byte("ours")}, f.load("a"))
		require.InDelta(t, 4102444800, f.score("a"), 0)
		require.Equal(t, raw("1"), f.load("early"))
		require.ErrorIs(t, f.rdb.ZScore(t.Context(), f.schedule(), f.entry("gone")).Err(), redis.Nil, "no partial change remains")
		require.Zero(t, f.rdb.Exists(t.Context(), f.entry("gone")).Val())

		again := f.fire("", Lock{}, f.firing("a", "1", "a@1"))
		require.Equal(t, []Outcome{Changed}, again.Outcomes, "one fires")
	})
}

func TestBeatOverlap(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.put("a", recur.Raw{}, raw("1"))
		require.Equal(t, []Outcome{Fired}, f.fire("", Lock{}, f.firing("a", "1", "a@1")).Outcomes)
		second := f.firing("a", "1", "a@2")
		second.Raw, second.Last = f.load("a"), "a@1"
		require.Equal(t, []Outcome{Overlapping}, f.fire("", Lock{}, second).Outcomes)
		waits, err := f.Waiting(t.Context(), f.topic, "a@1")
		require.NoError(t, err)
		require.True(t, waits)
		_, err = f.timers.Cancel(t.Context(), f.topic, "a@1")
		require.NoError(t, err)
		require.Equal(t, []Outcome{Fired}, f.fire("", Lock{}, second).Outcomes)
	})
}

// TestBeatForeignLock checks that a foreign lock prevents all firings in the same
// step, and that a lock that is known to be dead does not, until it is renewed.
func TestBeatForeignLock(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.put("a", recur.Raw{}, raw("1"))
		token := "32e7e484e58011f1963402fc00000001"
		require.NoError(t, f.rdb.Set(t.Context(), f.lock(), token, 1500*time.Second).Err())
		reply := f.fire("", Lock{}, f.firing("a", "1", "a@1"))
		require.True(t, reply.Barred)
		require.Equal(t, token, reply.Lock.Holder)
		require.InDelta(t, reply.Now.UnixMilli()+1500_000, reply.Lock.Ends, 60_000)
		require.True(t, f.fire("ours", Lock{}, f.firing("a", "1", "a@1")).Barred)
		require.Equal(t, token, f.rdb.Get(t.Context(), f.lock()).Val(), "the lock still has its holder")

		other := reply.Lock
		other.Ends -= 60_000
		require.True(t, f.fire("", other, f.firing("a", "1", "a@1")).Barred, "the lock was renewed since")
		require.False(t, f.fire("", reply.Lock, f.firing("a", "1", "a@1")).Barred)
		require.Equal(t, []string{"a@1"}, f.ids())
	})
}

func TestBeatOwnLock(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		looked, err := f.Look(t.Context(), "fleet", time.Second, 0, 0, 0)
		require.NoError(t, err)
		require.Equal(t, "fleet", looked.Lock.Holder)
		require.Positive(t, f.rdb.PTTL(t.Context(), f.lock()).Val())
		f.put("a", recur.Raw{}, raw("1"))
		require.False(t, f.fire("fleet", Lock{}, f.firing("a", "1", "a@1")).Barred, "another Wakebell node")
	})
}

func TestBeatLook(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		now := time.Now().Unix()
		for name, score := range map[string]int64{"never": -1, "old": 5, "soon": now + 3, "later": now + 3600} {
			require.NoError(t, f.Put(t.Context(), name, recur.Raw{}, raw("1"), score))
		}
		looked, err := f.Look(t.Context(), "", 10*time.Second, 0, 0, 2)
		require.NoError(t, err)
		require.Equal(t, []Member{{"old", 5}, {"soon", float64(now + 3)}}, looked.Due)
		require.Equal(t, []Member{{"never", -1}, {"old", 5}}, looked.Page)
		require.WithinDuration(t, time.Now(), looked.Now, time.Minute)
		looked, err = f.Look(t.Context(), "", 10*time.Second, 1, 0, 0)
		require.NoError(t, err)
		require.Equal(t, []Member{{"soon", float64(now + 3)}}, looked.Due)
		require.Empty(t, looked.Page)
	})
}

func TestBeatPutAndDelete(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.put("a", recur.Raw{}, raw("1"))
		require.ErrorIs(t, f.Put(t.Context(), "a", recur.Raw{}, raw("2"), 5), ErrChanged)
		f.put("a", raw("1"), recur.Raw{Definition: []byte("d"), Meta: []byte("m")})
		require.Equal(t, recur.Raw{Definition: []byte("d"), Meta: []byte("m")}, f.load("a"))
		for _, bad := range []string{"", ":schedule", string(make([]byte, 500))} {
			require.ErrorIs(t, f.Put(t.Context(), bad, recur.Raw{}, raw("1"), 5), wakebelltype.ErrInvalid)
		}
		require.NoError(t, f.AddStatics(t.Context(), "", "svc", "a", "b"))
		require.NoError(t, f.AddStatics(t.Context(), "", "other", "c"))
		require.NoError(t, f.DropStatics(t.Context(), "", "svc", "b"))
		names, err := f.Statics(t.Context(), "", "svc")
		require.NoError(t, err)
		require.Equal(t, []string{"a"}, names)
		f.put("a", f.load("a"), raw("1"))
		_, err = f.Delete(t.Context(), "a", []byte("another"))
		require.ErrorIs(t, err, ErrChanged)
		found, err := f.Delete(t.Context(), "a", raw("1").Ours)
		require.NoError(t, err)
		require.True(t, found)
		found, err = f.Delete(t.Context(), "a", nil)
		require.NoError(t, err)
		require.False(t, found)
		require.Zero(t, f.rdb.Exists(t.Context(), f.schedule(), f.entry("a")).Val())
	})
}

// TestBeatSend checks that a run in the outbox is sent once, by any node.
func TestBeatSend(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		put := func(incarnation string, run int64) {
			p := recur.Put{Topic: f.topic, ID: fmt.Sprintf("a@%d", run), Run: run, At: time.Unix(1, 0), Payload: []byte("p")}
			require.NoError(t, f.Send(t.Context(), "a", incarnation, p))
		}
		count := func() int64 { return f.rdb.ZCard(t.Context(), f.timers.Keys().Of(f.topic).Timeline).Val() }
		put("x", 1)
		put("x", 2)
		require.Equal(t, int64(2), count())
		_, err := f.timers.Cancel(t.Context(), f.topic, "a@1", "a@2") // they were delivered
		require.NoError(t, err)
		put("x", 1)
		put("x", 2)
		require.Zero(t, count())
		put("y", 1)
		require.Equal(t, int64(1), count(), "a new entry of the same name")
	})
}

// TestRunsCountAsScheduled checks that runs are counted once, however often they are
// sent, unless counts are switched off.
func TestRunsCountAsScheduled(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.put("a", recur.Raw{}, raw("1"))
		send := recur.Put{Run: 1, Topic: f.topic, ID: "sent", Payload: []byte("p"), At: time.Now()}
		for range 2 {
			f.fire("", Lock{}, f.firing("a", "1", "r"))
			require.NoError(t, f.Send(t.Context(), "a", "life", send))
		}
		scheduled := func() (n int64) {
			found, err := f.timers.Throughput(t.Context(), f.topic, time.Hour)
			require.NoError(t, err)
			for _, p := range found.Points {
				n += p.Scheduled
			}
			return n
		}
		require.EqualValues(t, 2, scheduled())
		f.put("c", recur.Raw{}, raw("1"))
		require.Equal(t, []Outcome{Fired}, f.fire("", Lock{}, f.firing("c", "1", "r")).Outcomes)
		require.EqualValues(t, 2, scheduled(), "a run whose timer is there, as when it is backfilled again")
		f.timers.NoCounts = true
		send.Run = 2
		require.NoError(t, f.Send(t.Context(), "a", "life", send))
		f.put("b", recur.Raw{}, raw("1"))
		require.Equal(t, []Outcome{Fired}, f.fire("", Lock{}, f.firing("b", "1", "other")).Outcomes)
		require.EqualValues(t, 2, scheduled())
	})
}

func TestBeatFiresCelery(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.put("a", recur.Raw{}, raw("1"))
		firing := f.firing("a", "1", "")
		firing.Runs = []Run{{Queue: f.topic + "q", Binding: f.topic + "b", Member: "m", Payload: []byte("message")}}
		require.Equal(t, []Outcome{Fired}, f.fire("", Lock{}, firing).Outcomes)
		require.Equal(t, []string{"message"}, f.rdb.LRange(t.Context(), f.topic+"q", 0, -1).Val())
		require.Equal(t, []string{"m"}, f.rdb.SMembers(t.Context(), f.topic+"b").Val())
	})
}

// TestBeatFireIsAllOrNothing checks that a batch whose topic has a wrong type
// changes nothing: no run is consumed.
func TestBeatFireIsAllOrNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.put("a", recur.Raw{}, raw("1"))
		require.NoError(t, f.rdb.Set(t.Context(), f.timers.Keys().Of(f.topic).Payloads, "x", 0).Err())
		_, err := f.Fire(t.Context(), "", Lock{}, []Firing{f.firing("a", "1", "a@1")})
		require.ErrorIs(t, err, wakebelltype.ErrWrongType)
		require.Equal(t, raw("1"), f.load("a"))
	})
}

func TestBeatInCluster(t *testing.T) {
	t.Parallel()
	rdb := redistest.Cluster(t).Client(t)
	tagged, err := timers.New(rdb, wakebelltype.Keys{HashTag: true, Beat: "{beat}:"})
	require.NoError(t, err)
	b := New(shards.New(tagged))
	require.NoError(t, b.Check(t.Context()))
	require.True(t, b.Shares(t.Context(), "beat"))
	require.False(t, b.Shares(t.Context(), "elsewhere"))
	require.NoError(t, b.Put(t.Context(), "a", recur.Raw{}, raw("1"), 5))
	reply, err := b.Fire(t.Context(), "", Lock{}, []Firing{{Name: "a", Raw: raw("1"), Meta: []byte("m"), Ours: []byte("outbox"), Score: 6}})
	require.NoError(t, err)
	require.Equal(t, []Outcome{Fired}, reply.Outcomes)
	require.NoError(t, b.Send(t.Context(), "a", "x", recur.Put{Topic: "elsewhere", ID: "a@1", Run: 1, At: time.Unix(1, 0)}))
	waits, err := b.Waiting(t.Context(), "elsewhere", "a@1")
	require.NoError(t, err)
	require.True(t, waits)
}
