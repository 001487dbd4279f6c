package joins

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/redisops/progress"
	"github.com/wakebell/wakebell/redisops/shards"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// world is a store of joins with an index of its own.
type world struct {
	*Store
	t   *testing.T
	rdb *redis.Client
	of  Ref
}

func newWorld(t *testing.T) *world {
	t.Helper()
	rdb := redistest.Shared(t)
	name := redistest.Name(t)
	store, err := timers.New(rdb, wakebelltype.Keys{}, timers.Names{Joins: name + ":joins"})
	require.NoError(t, err)
	return &world{New(shards.New(store)), t, rdb, Ref{Topic: name + ":reports", ID: "r:1", Name: "first"}}
}

// part returns a part, which is stored if it is to be.
func (w *world) part(id string, stored bool) wakebelltype.Part {
	p := wakebelltype.Part{Topic: strings.Replace(w.of.Topic, "reports", "tasks", 1), ID: id}
	if stored {
		w.store(p, envelope.Envelope{Headers: Headers(nil, "", w.of)})
	}
	return p
}

func (w *world) store(p wakebelltype.Part, env envelope.Envelope) {
	w.t.Helper()
	payload, err := envelope.Encode(env)
	require.NoError(w.t, err)
	b := timers.NewBatch("", 1)
	require.NoError(w.t, b.Add(p.Topic, &timers.Entry{ID: p.ID, Payload: payload, In: time.Hour}))
	_, err = w.topics.Write(w.t.Context(), nil, b)
	require.NoError(w.t, err)
}

// create makes a closed join of parts, with its timer.
func (w *world) create(parts ...wakebelltype.Part) {
	w.t.Helper()
	require.NoError(w.t, w.Create(w.t.Context(), w.of, time.Hour, parts...))
	w.store(wakebelltype.Part{Topic: w.of.Topic, ID: w.of.ID}, envelope.Envelope{Headers: Headers(nil, w.of.Name)})
	require.NoError(w.t, w.Close(w.t.Context(), w.of))
}

// audit audits all joins as if the time between two audits had passed, and their parts were
// added an hour ago.
func (w *world) audit() {
	w.t.Helper()
	ctx := w.t.Context()
	joins, err := w.rdb.ZRange(ctx, w.timers.Keys().Joins, 0, -1).Result()
	require.NoError(w.t, err)
	for _, join := range joins {
		require.NoError(w.t, w.rdb.ZAdd(ctx, w.timers.Keys().Joins, redis.Z{Member: join}).Err())
	}
	parts := w.keys(w.of)[1]
	all, err := w.rdb.ZRangeWithScores(ctx, parts, 0, -1).Result()
	require.NoError(w.t, err)
	for i := range all {
		all[i].Score -= 3600
	}
	if len(all) > 0 {
		require.NoError(w.t, w.rdb.ZAdd(ctx, parts, all...).Err())
	}
	_, err = w.Audit(ctx)
	require.NoError(w.t, err)
}

// due reports whether the timer of the join is due.
func (w *world) due() bool {
	w.t.Helper()
	timer, err := w.topics.Get(w.t.Context(), w.of.Topic, w.of.ID)
	require.NoError(w.t, err)
	return time.Until(timer.Due) < time.Minute
}

func (w *world) ends() (list []string) {
	w.t.Helper()
	for from := 0; ; {
		page, err := w.Page(w.t.Context(), w.of, from, 2, false)
		require.NoError(w.t, err)
		for _, e := range page.Ends {
			list = append(list, strings.TrimSpace(e.ID+" "+string(e.End)+" "+e.Reason))
		}
		if from = page.Next; from == 0 {
			return list
		}
	}
}

func TestFirstEndOfPartStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.part("a", true), w.part("b", true)
	w.create(a, b)
	for range 2 {
		require.NoError(t, w.Note(t.Context(), w.of, End{Part: a, End: wakebelltype.EndDone}))
		require.NoError(t, w.Note(t.Context(), w.of, End{Part: a, End: wakebelltype.EndDead, Reason: "later"}))
		require.False(t, w.due())
	}
	stranger := w.part("stranger", true)
	require.NoError(t, w.Note(t.Context(), w.of, End{Part: stranger, End: wakebelltype.EndDone}))
	require.NoError(t, w.Note(t.Context(), Ref{w.of.Topic, w.of.ID, "another"}, End{Part: b, End: wakebelltype.EndDone}))
	require.False(t, w.due())
	require.NoError(t, w.Note(t.Context(), w.of, End{Part: b, End: wakebelltype.EndDead, Reason: "no luck"}))
	require.True(t, w.due())
	require.Equal(t, []string{"a done", "b dead no luck"}, w.ends())
}

func TestEndsAtOnceAreAllNoted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	parts := make([]wakebelltype.Part, 200)
	for i := range parts {
		parts[i] = w.part(fmt.Sprint(i), false)
	}
	w.create(parts...)
	var noting sync.WaitGroup
	errs := make([]error, len(parts))
	for i, p := range parts {
		noting.Go(func() {
			e := End{Part: p, End: wakebelltype.EndDone, Result: &progress.Result{Payload: []byte(p.ID)}}
			if i%2 == 1 {
				e = End{Part: p, End: wakebelltype.EndDead, Reason: p.ID}
			}
			errs[i] = w.NoteOne(t.Context(), w.of, e)
		})
	}
	noting.Wait()
	require.NoError(t, errors.Join(errs...))
	require.True(t, w.due())
	for from := 0; ; {
		page, err := w.Page(t.Context(), w.of, from, 70, false)
		require.NoError(t, err)
		for _, e := range page.Ends {
			if e.Result != nil {
				require.Equal(t, e.ID, string(e.Result.Payload))
			} else {
				require.Equal(t, e.ID, e.Reason)
			}
		}
		if from = page.Next; from == 0 {
			return
		}
	}
}

// TestAuditRunsTimerAfterCrash has a node that crashes after it has noted the last end.
func TestAuditRunsTimerAfterCrash(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.part("a", true)
	w.create(a)
	e := End{Part: a, End: wakebelltype.EndDone}
	reply, err := w.timers.RunText(t.Context(), settleScript, w.keys(w.of), w.of.Name, "0", member(a), e.text())
	require.NoError(t, err)
	require.Equal(t, "ed", reply)
	require.False(t, w.due())
	w.audit()
	require.True(t, w.due())
}

func TestAuditNotesPartsThatDoNotExist(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lives, gone := w.part("lives", true), w.part("gone", false)
	w.create(lives, gone)
	w.audit()
	require.Equal(t, []string{"lives", "gone cancelled"}, w.ends())
	require.False(t, w.due())
	_, err := w.topics.Cancel(t.Context(), lives.Topic, lives.ID)
	require.NoError(t, err)
	w.audit()
	require.Equal(t, []string{"lives cancelled", "gone cancelled"}, w.ends())
	require.True(t, w.due())
}

// TestAuditLeavesNewPartsAlone checks that a part may be stored a moment after it was added.
func TestAuditLeavesNewPartsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(w.part("late", false))
	require.NoError(t, w.rdb.ZAdd(t.Context(), w.timers.Keys().Joins, redis.Z{Member: member(wakebelltype.Part{Topic: w.of.Topic, ID: w.of.ID})}).Err())
	_, err := w.Audit(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"late"}, w.ends())
}

func TestJoinIsForgottenAfterItsTimer(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w *world){
		"cancelled": func(w *world) {
			_, err := w.topics.Cancel(w.t.Context(), w.of.Topic, w.of.ID)
			require.NoError(w.t, err)
		},
		"replaced": func(w *world) {
			w.store(wakebelltype.Part{Topic: w.of.Topic, ID: w.of.ID}, envelope.Envelope{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := w.part("a", true)
			w.create(a)
			end(w)
			w.audit() // the timer may be on the way
			w.audit()
			require.Zero(t, w.rdb.ZCard(t.Context(), w.timers.Keys().Joins).Val())
			for _, key := range w.keys(w.of)[:2] {
				life := w.rdb.PTTL(t.Context(), key).Val()
				require.Greater(t, life, time.Duration(0), key)
				require.LessOrEqual(t, life, After, key)
			}
			require.NoError(t, w.Note(t.Context(), w.of, End{Part: a, End: wakebelltype.EndDone}))
			if name == "replaced" {
				require.False(t, w.due())
			}
		})
	}
}

func TestEveryKeyOfJoinExpires(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(w.part("a", true), w.part("b", true))
	require.NoError(t, w.Note(t.Context(), w.of, End{Part: w.part("a", false), End: wakebelltype.EndDone}))
	for range 2 {
		for _, key := range w.keys(w.of) {
			life := w.rdb.PTTL(t.Context(), key).Val()
			require.Greater(t, life, Retention, key)
			require.LessOrEqual(t, life, Retention+time.Hour, key)
		}
		w.audit()
	}
}

func TestJoinHasBoundedParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	parts := make([]wakebelltype.Part, MaxParts)
	for i := range parts {
		parts[i] = w.part(fmt.Sprint("p", i), false)
	}
	require.NoError(t, w.Create(t.Context(), w.of, time.Hour, parts...))
	_, err := w.Add(t.Context(), w.of, parts[5], w.part("more", false))
	require.ErrorIs(t, err, wakebelltype.ErrInvalid)
	require.ErrorContains(t, err, "more than 100000")
	_, err = w.Add(t.Context(), Ref{Topic: w.of.Topic, ID: w.of.ID}, parts[5])
	require.NoError(t, err, "it is a part already")
	seen := 0
	for from := 0; ; {
		page, err := w.Page(t.Context(), w.of, from, 1000, true)
		require.NoError(t, err)
		for i, e := range page.Ends {
			require.Equal(t, parts[from+i], e.Part)
		}
		seen += len(page.Ends)
		if from = page.Next; from == 0 {
			break
		}
	}
	require.Equal(t, MaxParts, seen)
	_, head, err := w.Head(t.Context(), w.of)
	require.NoError(t, err)
	require.Equal(t, wakebelltype.Join{Open: true, Parts: MaxParts}, head)
}

func TestAdoptMarksTimersOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := wakebelltype.Part{Topic: w.of.Topic + "2", ID: "a"}
	w.store(p, envelope.Envelope{Headers: []envelope.Header{{Key: "x", Value: "y"}}, Body: []byte("body"), ContentType: "text/plain"})
	other := Ref{w.of.Topic, "r 2", "second"}
	for _, r := range []Ref{w.of, other, w.of} {
		require.NoError(t, w.Create(t.Context(), r, time.Hour, p))
		require.NoError(t, w.Adopt(t.Context(), r, p))
	}
	timer, err := w.topics.Get(t.Context(), p.Topic, p.ID)
	require.NoError(t, err)
	env, err := envelope.Decode(timer.Payload)
	require.NoError(t, err)
	require.Equal(t, []Ref{w.of, other}, RefsOf(env.Headers))
	require.Equal(t, "body", string(env.Body))
	require.Equal(t, envelope.Header{Key: "x", Value: "y"}, env.Headers[0])
}

// TestBrokenStateStopsNothing has keys of another type, and contents of another program.
func TestBrokenStateStopsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, a := t.Context(), w.part("a", true)
	w.create(a)
	keys := w.keys(w.of)
	require.NoError(t, w.rdb.ZAdd(ctx, keys[1], redis.Z{Member: "no part", Score: 1}).Err())
	require.NoError(t, w.rdb.HSet(ctx, keys[2], "no part", "no end").Err())
	require.NoError(t, w.rdb.HSet(ctx, keys[0], "d", "many", "rank", "-7", "audits", "x").Err())
	require.NoError(t, w.rdb.ZAdd(ctx, w.timers.Keys().Joins, redis.Z{Member: "no join"}).Err())
	w.audit()
	require.Equal(t, []string{"no part missing", "a"}, w.ends())
	require.Equal(t, []string{member(wakebelltype.Part{Topic: w.of.Topic, ID: w.of.ID})}, w.rdb.ZRange(ctx, w.timers.Keys().Joins, 0, -1).Val())
	require.NoError(t, w.rdb.Del(ctx, keys[0]).Err())
	require.NoError(t, w.rdb.Set(ctx, keys[0], "text", 0).Err())
	require.ErrorIs(t, w.Note(ctx, w.of, End{Part: a, End: wakebelltype.EndDone}), wakebelltype.ErrWrongType)
	_, err := w.Page(ctx, w.of, 0, 10, false)
	require.ErrorIs(t, err, wakebelltype.ErrWrongType)
}

func TestRefsOfHeaders(t *testing.T) {
	t.Parallel()
	refs := []Ref{{"a:b c", "ü\n", "n"}, {"t", "%3A", "m"}}
	require.Equal(t, refs, RefsOf(Headers(nil, "", refs...)))
	for _, text := range []string{"", "a:b", "a:b:c:d", "%zz:t:i", ":t:i", "n::i", "n:t:", "n:t~2~1:i", "n:t:" + strings.Repeat("x", 600)} {
		require.Empty(t, RefsOf([]envelope.Header{{Key: PartHeader, Value: text}}), text)
	}
	many := RefsOf(Headers(nil, "", slices.Repeat(refs, 20)...))
	require.Len(t, many, maxJoins)
	for _, p := range []wakebelltype.Part{{Topic: "a:b", ID: "c%:d"}, {Topic: "{x}", ID: "ü"}} {
		got, ok := partOf(member(p))
		require.True(t, ok)
		require.Equal(t, p, got)
	}
	require.ErrorIs(t, noJoin(refs[0]), wakebelltype.ErrNotFound)
}

// A server without joins is asked for them by one command, not by a script.
func TestAuditWithoutJoinsRunsNoScript(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	store, err := timers.New(rdb, wakebelltype.Keys{})
	require.NoError(t, err)
	next, err := New(shards.New(store)).Audit(t.Context())
	require.NoError(t, err)
	require.Negative(t, next)
	stats, err := rdb.InfoMap(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	require.NotContains(t, stats["Commandstats"], "cmdstat_evalsha")
	require.Contains(t, stats["Commandstats"], "cmdstat_exists")
}
