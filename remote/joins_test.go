package remote_test

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestPartsEndWhoeverHandlesThem has the parts of a join handled by a batch handler, an actor
// and a subscriber: the node notes their ends.
func TestPartsEndWhoeverHandlesThem(t *testing.T) {
	t.Parallel()
	name := redistest.Name(t)
	batched, forwarded := wakebell.NewTopic[string](name+"-batched"), wakebell.NewTopic[string](name+"-forwarded")
	subscribed, done := wakebell.NewTopic[string](name+"-subscribed"), wakebell.NewTopic[string](name+"-done")
	answers := wakebell.ToEachActor(actor.PropsFromFunc(func(c actor.Context) {
		if lease, ok := c.Message().(*messages.Lease); ok && lease.GetId() == "bad" {
			c.Respond(lease.Reject(errors.New("never")))
		} else if ok {
			c.Respond(lease.Ack())
		}
	}))
	type part = wakebelltype.Part
	ends := make(chan map[part]wakebelltype.End, 1)
	n := serve(t, withToken(),
		wakebell.HandleBatch(batched, func(_ context.Context, timers []wakebell.Timer[string]) error {
			failed := wakebell.BatchError{}
			for _, timer := range timers {
				if timer.ID == "bad" {
					failed[timer.ID] = wakebell.Reject(errors.New("never"))
				}
			}
			return failed
		}),
		wakebell.Forward(forwarded, answers),
		wakebell.Handle(done, func(ctx context.Context, timer wakebell.Timer[string]) error {
			seen := map[part]wakebelltype.End{}
			for p, err := range timer.Parts(ctx) {
				if err != nil {
					return err
				}
				seen[p.Part] = p.End
			}
			ends <- seen
			return nil
		}))
	c := dial(t, n)
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		over <- c.Subscribe(ctx, remote.Subscription{Topic: subscribed.Name(), Name: "s", Credits: 10}, func(_ context.Context, l *messages.Lease) error {
			if l.GetId() == "bad" {
				return wakebell.Reject(errors.New("never"))
			}
			return nil
		})
	}()
	var parts []wakebell.Draft
	expected := map[part]wakebelltype.End{}
	for _, topic := range []wakebell.Topic[string]{batched, forwarded, subscribed} {
		parts = append(parts, topic.Draft("", wakebell.ID("good")), topic.Draft("", wakebell.ID("bad")))
		expected[part{Topic: topic.Name(), ID: "good"}] = wakebelltype.EndDone
		expected[part{Topic: topic.Name(), ID: "bad"}] = wakebelltype.EndDead
	}
	_, err := n.Client().Schedule(ctx, wakebell.Batch(parts...).Then(done.Draft("", wakebell.ID("r"), wakebell.In(time.Hour)))...)
	require.NoError(t, err)
	require.Equal(t, expected, <-ends)
	stop()
	require.NoError(t, <-over)
}

// endsOf returns how the parts of a listing have ended.
func endsOf(t testing.TB, parts iter.Seq2[wakebell.PartEnd, error]) map[string]wakebelltype.End {
	t.Helper()
	all := map[string]wakebelltype.End{}
	for p, err := range parts {
		require.NoError(t, err)
		all[p.ID] = p.End
	}
	return all
}

// partsOn returns parts of a topic.
func partsOn(topic string, ids ...string) (parts []wakebelltype.Part) {
	for _, id := range ids {
		parts = append(parts, wakebelltype.Part{Topic: topic, ID: id})
	}
	return parts
}

// TestJoinsOverNetwork has a client without Redis schedule a join, whose timer it handles: it
// is due after its last part, and the subscriber reads how the parts have ended.
func TestJoinsOverNetwork(t *testing.T) {
	t.Parallel()
	work := wakebell.NewTopic[string](redistest.Name(t))
	release := make(chan struct{})
	n := serve(t, withToken(), wakebell.HandleResult(work, func(_ context.Context, timer wakebell.Timer[string]) (int, error) {
		if timer.ID == "last" {
			<-release
		}
		if timer.Body == "bad" {
			return 0, wakebell.Reject(errors.New("never"))
		}
		return len(timer.Body), nil
	}))
	c, ctx := dial(t, n), t.Context()
	seen := make(chan map[string]wakebelltype.End, 1)
	subscribe(t, c, remote.Subscription{Topic: n.topic.Name(), Name: "s"}, func(ctx context.Context, l *messages.Lease) error {
		seen <- endsOf(t, c.PartsOf(ctx, l))
		return nil
	})
	_, err := work.Schedule(ctx, c, "before", wakebell.ID("before"), wakebell.In(time.Hour))
	require.NoError(t, err)
	drafts := wakebell.Batch(work.Draft("rows", wakebell.ID("good")), work.Draft("bad", wakebell.ID("bad")), work.Draft("last", wakebell.ID("last"))).
		Then(n.topic.Draft("", wakebell.ID("r"), wakebell.In(time.Hour), wakebell.After(partsOn(work.Name(), "before", "unknown")...)))
	stored, err := c.Schedule(ctx, drafts...)
	require.NoError(t, err)
	require.Equal(t, "r", stored[3].ID)
	_, err = c.RunNow(ctx, work.Name(), "before")
	require.NoError(t, err)
	eventually(t, func() bool {
		join, err := c.Join(ctx, n.topic.Name(), "r")
		return err == nil && join == wakebelltype.Join{Parts: 5, Done: 2, Dead: 1, Missing: 1}
	})
	require.Empty(t, seen, "a part runs")
	close(release)
	require.Equal(t, map[string]wakebelltype.End{
		"before": wakebelltype.EndDone, "good": wakebelltype.EndDone, "last": wakebelltype.EndDone,
		"bad": wakebelltype.EndDead, "unknown": wakebelltype.EndMissing,
	}, receive(t, seen))

	var paged []wakebell.PartEnd
	for more := true; more; { // pages of two, as a program that resumes
		more = false
		page := wakebelltype.Page{Limit: 2}
		if len(paged) > 0 {
			page.After = paged[len(paged)-1].Cursor
		}
		for p, err := range c.Parts(ctx, n.topic.Name(), "r", page) {
			require.NoError(t, err)
			paged, more = append(paged, p), true
		}
	}
	require.Len(t, paged, 5)
	for _, p := range paged {
		switch p.ID {
		case "good":
			rows, err := wakebell.ReadResult[int](ctx, c, p.Topic, p.ID, p.Result)
			require.NoError(t, err)
			require.Equal(t, 4, rows)
		case "bad":
			require.Equal(t, "never", p.Reason)
		}
	}
	for _, err := range c.PartsOf(ctx, &messages.Lease{Topic: work.Name(), Id: "good"}) {
		require.ErrorIs(t, err, wakebell.ErrNotFound, "it has no join")
	}
}

// TestManyPartsOverNetwork schedules a join, a chain and a part of an open join, which need
// several requests.
func TestManyPartsOverNetwork(t *testing.T) {
	t.Parallel()
	const many = 1500
	work, done := wakebell.NewTopic[string](redistest.Name(t)), make(chan string, 3)
	n := serve(t, withToken(), wakebell.Handle(work, func(context.Context, wakebell.Timer[string]) error { return nil }))
	c, ctx, sum := dial(t, n), t.Context(), n.topic
	subscribe(t, c, remote.Subscription{Topic: sum.Name(), Name: "s"}, func(_ context.Context, l *messages.Lease) error {
		done <- l.GetId()
		return nil
	})
	drafts := make([]wakebell.Draft, many)
	for i := range drafts {
		drafts[i] = work.Draft("", wakebell.ID(strconv.Itoa(i)))
	}
	all := wakebell.Batch(drafts...).Then(sum.Draft("", wakebell.ID("first"), wakebell.In(time.Hour)))
	chain := wakebell.Chain(all[many], sum.Draft("", wakebell.ID("second"), wakebell.In(time.Hour)),
		sum.Draft("", wakebell.ID("third"), wakebell.In(time.Hour), wakebell.PartOf(sum.Name(), "open")))
	open := sum.Draft("", wakebell.ID("open"), wakebell.In(time.Hour), wakebell.AfterOpen())
	stored, err := c.Schedule(ctx, append(append(all[:many:many], chain...), open)...)
	require.NoError(t, err)
	require.Len(t, stored, many+4)
	for i, s := range stored[:many] {
		require.Equal(t, strconv.Itoa(i), s.ID)
	}
	for _, id := range []string{"first", "second", "third"} {
		require.Equal(t, id, receive(t, done))
	}
	join, err := c.Join(ctx, sum.Name(), "first")
	require.NoError(t, err)
	require.Equal(t, wakebelltype.Join{Parts: many, Done: many}, join)
	require.Len(t, endsOf(t, c.Parts(ctx, sum.Name(), "first", wakebelltype.Page{})), many)
	join, err = c.Join(ctx, sum.Name(), "open")
	require.NoError(t, err)
	require.True(t, join.Open)
	require.EqualValues(t, 1, join.Parts)
}

func inAnHour() *messages.ScheduleRequest_In {
	return &messages.ScheduleRequest_In{In: durationpb.New(time.Hour)}
}

func partOf(topic, id string) *messages.TimerPart { return &messages.TimerPart{Topic: topic, Id: id} }

// TestRepeatedRequestHasOneJoin sends the same requests again, with and without an
// idempotency key, and with another name of the join, as a client that made its drafts anew.
func TestRepeatedRequestHasOneJoin(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	work, topic, s := redistest.Name(t), n.topic.Name(), talk(t, n, secret)
	batch := func(key, name string) *messages.ScheduleBatchRequest {
		return &messages.ScheduleBatchRequest{Key: key, Timers: []*messages.ScheduleRequest{
			{Topic: topic, When: inAnHour(), Id: "a" + key, PartOf: []*messages.TimerPart{partOf(topic, "r"+key)}},
			{Topic: topic, Id: "r" + key, When: inAnHour(), JoinName: name, After: []*messages.TimerPart{partOf(work, "b")}},
			{Topic: topic, Id: "o" + key, When: inAnHour(), Open: true},
		}}
	}
	for key, sent := range map[string][]string{"": {"one", "one"}, "k": {"one", "one", "two"}} {
		names := map[string]bool{}
		for _, name := range sent {
			answer, ok := s.ask(batch(key, name)).(*messages.ScheduleBatchResponse)
			require.True(t, ok)
			for i, id := range []string{"a", "r", "o"} {
				require.Equal(t, id+key, answer.GetTimers()[i].GetId())
				if key != "" {
					require.Equal(t, messages.Outcome_OUTCOME_CREATED, answer.GetTimers()[i].GetOutcome(), "it is the first answer")
				}
			}
			_, content, err := n.Client().Get(t.Context(), topic, "r"+key)
			require.NoError(t, err)
			header, _ := content.Headers.Get(wakebelltype.JoinHeader)
			names[header] = true
			parts := endsOf(t, n.Client().Parts(t.Context(), topic, "r"+key, wakebelltype.Page{}))
			require.Equal(t, map[string]wakebelltype.End{"a" + key: "", "b": wakebelltype.EndMissing}, parts)
		}
		require.Len(t, names, 1)
	}
	st, err := n.Client().Stats(t.Context(), topic)
	require.NoError(t, err)
	require.EqualValues(t, 6, st.Total)
}

// TestRepeatedRequestLeavesLaterJoinAlone sends a request again whose join another request has
// replaced, and uses its key for other requests.
func TestRepeatedRequestLeavesLaterJoinAlone(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	work, topic, s := redistest.Name(t), n.topic.Name(), talk(t, n, secret)
	joined := func(key, part string) *messages.ScheduleBatchRequest {
		return &messages.ScheduleBatchRequest{Key: key, Timers: []*messages.ScheduleRequest{
			{Topic: work, Id: part, When: inAnHour()},
			{Topic: topic, Id: "r", When: inAnHour(), After: []*messages.TimerPart{partOf(work, part)}},
		}}
	}
	parts := func() map[string]wakebelltype.End {
		return endsOf(t, n.Client().Parts(t.Context(), topic, "r", wakebelltype.Page{}))
	}
	first, ok := s.ask(joined("one", "a")).(*messages.ScheduleBatchResponse)
	require.True(t, ok)
	s.ask(joined("two", "b"))
	require.Equal(t, map[string]wakebelltype.End{"b": ""}, parts())
	again, ok := s.ask(joined("one", "a")).(*messages.ScheduleBatchResponse)
	require.True(t, ok)
	require.Equal(t, first.GetTimers()[1].GetDue().AsTime(), again.GetTimers()[1].GetDue().AsTime(), "it is the first answer")
	require.Equal(t, map[string]wakebelltype.End{"b": ""}, parts(), "the later join stays")

	s.refused(messages.Code_CODE_CONFLICT, joined("one", "c"))
	s.refused(messages.Code_CODE_CONFLICT, &messages.ScheduleRequest{Key: "one", Topic: topic, Id: "x", When: inAnHour()})
	require.Equal(t, map[string]wakebelltype.End{"b": ""}, parts(), "a refused request makes no join")

	c, ctx := n.Client(), t.Context()
	_, err := c.CancelJoin(ctx, topic, "r")
	require.NoError(t, err)
	s.ask(joined("two", "b"))
	_, _, err = c.Get(ctx, topic, "r")
	require.ErrorIs(t, err, wakebell.ErrNotFound, "a request does not schedule again what was cancelled")
}

// TestOpenJoinsOverNetwork adds parts to a join, closes it and cancels it.
func TestOpenJoinsOverNetwork(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	c, ctx, other := dial(t, n), t.Context(), redistest.Name(t)
	work, topic := wakebell.NewTopic[string](other), n.topic.Name()
	_, err := c.Schedule(ctx, n.topic.Draft("", wakebell.ID("r"), wakebell.In(time.Hour), wakebell.AfterOpen()))
	require.NoError(t, err)
	for range 2 {
		_, err = c.Schedule(ctx, work.Draft("", wakebell.ID("a"), wakebell.In(time.Hour), wakebell.PartOf(topic, "r")), work.Draft("", wakebell.ID("b"), wakebell.In(time.Hour)))
		require.NoError(t, err)
		require.NoError(t, c.AddParts(ctx, topic, "r", partsOn(other, "b", "none")...))
	}
	require.NoError(t, c.CloseJoin(ctx, topic, "r"))
	join, err := c.Join(ctx, topic, "r")
	require.NoError(t, err)
	require.Equal(t, wakebelltype.Join{Parts: 3, Missing: 1}, join)
	require.ErrorIs(t, c.AddParts(ctx, topic, "r", partsOn(other, "late")...), wakebell.ErrInvalid)
	require.ErrorIs(t, c.AddParts(ctx, topic, "none", partsOn(other, "late")...), wakebell.ErrNotFound)
	require.ErrorIs(t, c.CloseJoin(ctx, topic, "none"), wakebell.ErrNotFound)
	_, err = c.CancelJoin(ctx, topic, "none")
	require.ErrorIs(t, err, wakebell.ErrNotFound)

	fault := talk(t, n, secret).refused(messages.Code_CODE_INVALID, &messages.CancelJoinRequest{Topic: topic, Id: "r", Topics: []string{topic}})
	require.Contains(t, fault.GetMessage(), "topics: ")
	_, _, err = c.Get(ctx, topic, "r")
	require.NoError(t, err, "nothing was cancelled")
	parts, err := c.CancelJoin(ctx, topic, "r")
	require.NoError(t, err)
	require.EqualValues(t, 2, parts)
	for topic, id := range map[string]string{topic: "r", other: "a"} {
		_, _, err = c.Get(ctx, topic, id)
		require.ErrorIs(t, err, wakebell.ErrNotFound)
	}
	require.Equal(t, map[string]wakebelltype.End{"a": wakebelltype.EndCancelled, "b": wakebelltype.EndCancelled, "none": wakebelltype.EndMissing},
		endsOf(t, c.Parts(ctx, topic, "r", wakebelltype.Page{})))
}
