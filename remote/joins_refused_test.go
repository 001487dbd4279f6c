package remote_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestHostileJoinsAreRefused checks that errors name the field, and that nothing is written.
func TestHostileJoinsAreRefused(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	s, topic := talk(t, n, secret), n.topic.Name()
	type request = messages.ScheduleRequest
	several := func(k int, p *messages.TimerPart) []*messages.TimerPart {
		return slices.Repeat([]*messages.TimerPart{p}, k)
	}
	for text, m := range map[string]*request{
		"After: part 1: ":              {After: []*messages.TimerPart{partOf(topic, "b"), partOf("", "b")}, When: inAnHour()},
		"After: part 0: ":              {After: several(1, partOf(topic, "")), When: inAnHour()},
		"513 bytes":                    {After: several(1, partOf(topic, strings.Repeat("x", 513))), When: inAnHour()},
		"PartOf: part 0: ":             {PartOf: several(1, partOf(topic, ""))},
		`After: "a"`:                   {After: several(1, partOf(topic, "a")), When: inAnHour()},
		`PartOf: "a"`:                  {PartOf: several(1, partOf(topic, "a"))},
		"PartOf: 17 joins, at most 16": {PartOf: several(17, partOf(topic, "b"))},
		"join_name: 129":               {JoinName: strings.Repeat("x", 129), When: inAnHour()},
		"After: it needs In or At":     {Open: true},
		"excludes Debounce":            {Open: true, When: inAnHour(), IfExists: messages.Policy_POLICY_KEEP},
	} {
		m.Topic, m.Id = topic, "a"
		require.Contains(t, s.refused(messages.Code_CODE_INVALID, proto.CloneOf(m)).GetMessage(), text)
		fault := s.refused(messages.Code_CODE_INVALID, &messages.ScheduleBatchRequest{Timers: []*request{{Topic: topic, Id: "first"}, m}})
		require.Contains(t, fault.GetMessage(), text)
		require.Contains(t, fault.GetMessage(), "timer 1: ")
	}
	s.refused(messages.Code_CODE_NOT_FOUND, &request{Topic: topic, Id: "a", PartOf: several(1, partOf(topic, "none"))})
	s.refused(messages.Code_CODE_INVALID, &messages.AddPartsRequest{Topic: topic, Id: "a", Parts: several(1, partOf(topic, ""))})
	s.refused(messages.Code_CODE_INVALID, &messages.ListPartsRequest{Topic: topic, Id: "a", Limit: 1001})
	s.refused(messages.Code_CODE_INVALID, &messages.ListPartsRequest{Topic: topic, Id: "a", After: "-1"})
	st, err := n.Client().Stats(t.Context(), topic)
	require.NoError(t, err)
	require.Zero(t, st.Total)

	// The frames of a connection have a bound of their own below 100,000 parts.
	ask := func(m messages.Request) error {
		_, err := wakebell.Answered[*messages.ScheduleBatchResponse](n.ActorSystem().Root.RequestFuture(n.Gateway(), m, patience).Result())
		return err
	}
	half := several(50_001, partOf(topic, "b"))
	err = ask(&messages.ScheduleBatchRequest{Timers: []*request{{Topic: topic, Id: "a", When: inAnHour(), After: half}, {Topic: topic, Id: "c", When: inAnHour(), After: half}}})
	require.ErrorContains(t, err, "after, part_of: 100002 in a request, at most 100000")

	// A ring waits until its instants.
	ring := []*request{
		{Topic: topic, Id: "x", When: inAnHour(), After: several(1, partOf(topic, "y"))},
		{Topic: topic, Id: "y", When: inAnHour(), After: several(1, partOf(topic, "x"))},
	}
	require.IsType(t, &messages.ScheduleBatchResponse{}, s.ask(&messages.ScheduleBatchRequest{Timers: ring}))
	info, _, err := n.Client().Get(t.Context(), topic, "x")
	require.NoError(t, err)
	require.Equal(t, wakebell.StatePending, info.State)
}

// TestRightsOfJoins checks that a principal with one topic neither learns of nor changes the
// timers of another one by a join.
func TestRightsOfJoins(t *testing.T) {
	t.Parallel()
	mine, foreign, readable := redistest.Name(t), redistest.Name(t), redistest.Name(t)
	n := serve(t, withRights(t, "mallory * topic:"+mine+"\nmallory read topic:"+readable+"\ntests * *"))
	ctx, mallory, honest := t.Context(), dialAs(t, n, malloryToken), dial(t, n)
	bells := wakebell.NewTopic[string](mine)
	for _, topic := range []string{mine, foreign, readable} {
		of := wakebell.NewTopic[string](topic)
		_, err := honest.Schedule(ctx, of.Draft("", wakebell.ID("x"), wakebell.In(time.Hour)), of.Draft("", wakebell.ID("open"), wakebell.In(time.Hour), wakebell.AfterOpen()))
		require.NoError(t, err)
	}
	_, err := honest.Schedule(ctx,
		bells.Draft("", wakebell.ID("own"), wakebell.In(time.Hour), wakebell.AfterOpen(partsOn(mine, "x")...)),
		bells.Draft("", wakebell.ID("mixed"), wakebell.In(time.Hour), wakebell.AfterOpen(partsOn(foreign, "x")...)))
	require.NoError(t, err)
	for _, topic := range []string{foreign, readable} {
		x := partsOn(topic, "x")
		_, err := mallory.Schedule(ctx, bells.Draft("", wakebell.ID("r"), wakebell.In(time.Hour), wakebell.After(x...)))
		require.ErrorIs(t, err, wakebell.ErrForbidden)
		_, err = mallory.Schedule(ctx, bells.Draft("", wakebell.ID("s")), bells.Draft("", wakebell.ID("r"), wakebell.In(time.Hour), wakebell.After(x...)))
		require.ErrorIs(t, err, wakebell.ErrForbidden)
		_, err = mallory.Schedule(ctx, bells.Draft("", wakebell.ID("r"), wakebell.PartOf(topic, "open")))
		require.ErrorIs(t, err, wakebell.ErrForbidden)
		require.ErrorIs(t, mallory.AddParts(ctx, mine, "own", x...), wakebell.ErrForbidden)
		require.ErrorIs(t, mallory.AddParts(ctx, topic, "open", partsOn(mine, "x")...), wakebell.ErrForbidden)
		require.ErrorIs(t, mallory.CloseJoin(ctx, topic, "open"), wakebell.ErrForbidden)
		_, err = mallory.CancelJoin(ctx, topic, "open")
		require.ErrorIs(t, err, wakebell.ErrForbidden)
	}
	listed := 0
	for _, err := range mallory.Parts(ctx, mine, "mixed", wakebelltype.Page{}) {
		require.ErrorIs(t, err, wakebell.ErrForbidden)
		require.NotContains(t, err.Error(), foreign)
		listed++
	}
	require.Equal(t, 1, listed)
	_, err = mallory.CancelJoin(ctx, mine, "mixed")
	require.ErrorIs(t, err, wakebell.ErrForbidden)
	raw := talk(t, n, malloryToken)
	raw.refused(messages.Code_CODE_FORBIDDEN, &messages.CancelJoinRequest{Topic: mine, Id: "mixed", Topics: []string{foreign}})
	raw.refused(messages.Code_CODE_INVALID, &messages.CancelJoinRequest{Topic: mine, Id: "mixed"})
	for topic, joins := range map[string]int{mine: 1, foreign: 1, readable: 0} {
		_, content, err := n.Client().Get(ctx, topic, "x")
		require.NoError(t, err)
		header, _ := content.Headers.Get("wakebell-part")
		require.Equal(t, 2*joins, strings.Count(header, ":"))
	}
	_, _, err = n.Client().Get(ctx, mine, "mixed")
	require.NoError(t, err)
	_, _, err = n.Client().Get(ctx, mine, "r")
	require.ErrorIs(t, err, wakebell.ErrNotFound)

	parts, err := mallory.CancelJoin(ctx, mine, "own")
	require.NoError(t, err)
	require.EqualValues(t, 1, parts)
}
