package gateway_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestMessageStoresSameBytesAsCall(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	p := stacktest.Posted(t, rdb, wakebell.Config{})
	same := func(t *testing.T, draft func(topic string) wakebell.Draft) {
		t.Helper()
		byCall, byMessage := redistest.Name(t), redistest.Name(t)
		_, err := p.Client().Schedule(t.Context(), draft(byCall))
		require.NoError(t, err)
		asked[*messages.ScheduleResponse](t, p, stacktest.Message(t, draft(byMessage)))
		stored := func(topic string) string {
			payload, err := rdb.HGet(t.Context(), stacktest.Peer{Topic: topic}.Payloads(), "id").Result()
			require.NoError(t, err)
			return payload
		}
		require.Equal(t, stored(byCall), stored(byMessage))
	}
	id := wakebell.ID("id")
	same(t, func(n string) wakebell.Draft { return wakebell.NewTopic[string](n).Draft("text ✓", id) })
	same(t, func(n string) wakebell.Draft { return wakebell.NewTopic[string](n).Draft("", id) })
	same(t, func(n string) wakebell.Draft {
		return wakebell.NewTopic[stacktest.Invoice](n).Draft(stacktest.Invoice{Number: "7", Cents: 1}, id)
	})
	same(t, func(n string) wakebell.Draft { return wakebell.NewTopic[*stacktest.Invoice](n).Draft(nil, id) })
	same(t, func(n string) wakebell.Draft {
		return wakebell.NewTopic[*wrapperspb.StringValue](n).Draft(wrapperspb.String("x"), id)
	})
	same(t, func(n string) wakebell.Draft {
		return wakebell.NewTopic[[]byte](n).Draft([]byte{0, 0xff}, id, wakebell.ContentType("application/pdf"))
	})
	same(t, func(n string) wakebell.Draft {
		return wakebell.NewTopic[string](n).Draft("x", id, wakebell.CorrelationID("cause"),
			wakebell.Header("a", "1"), wakebell.Header("b", "2"), wakebell.Header("a", "3"))
	})
}

func TestMessageHasPolicyOfItsDraft(t *testing.T) {
	t.Parallel()
	p := stacktest.Posted(t, redistest.Shared(t), wakebell.Config{})
	hour, soon := wakebell.In(time.Hour), wakebell.At(time.Now().Add(time.Minute))
	for name, opts := range map[string][2][]wakebell.ScheduleOption{
		"replace":      {{hour}, {soon}},
		"keep":         {{hour}, {soon, wakebell.IfExists(wakebelltype.PolicyKeep)}},
		"earlier":      {{hour}, {soon, wakebell.IfExists(wakebelltype.PolicyEarliest)}},
		"later":        {{soon}, {hour, wakebell.IfExists(wakebelltype.PolicyEarliest)}},
		"debounce":     {{wakebell.Debounce(time.Minute, time.Hour)}, {wakebell.Debounce(2*time.Hour, 3*time.Hour)}},
		"no limit":     {{wakebell.Debounce(time.Minute, 0)}, {wakebell.Debounce(2*time.Hour, 0)}},
		"at the limit": {{wakebell.Debounce(time.Minute, time.Hour)}, {wakebell.Debounce(time.Hour, time.Hour)}},
		"at once":      {{}, {}},
	} {
		outcome := func(t *testing.T, schedule func(wakebell.Draft) (due time.Time, outcome int)) (time.Time, int) {
			t.Helper()
			topic := wakebell.NewTopic[string](redistest.Name(t))
			schedule(topic.Draft("x", append(opts[0], wakebell.ID("id"))...))
			return schedule(topic.Draft("x", append(opts[1], wakebell.ID("id"))...))
		}
		dueByCall, byCall := outcome(t, func(d wakebell.Draft) (time.Time, int) {
			s, err := p.Client().Schedule(t.Context(), d)
			require.NoError(t, err)
			return s[0].Due, int(s[0].Outcome)
		})
		dueByMessage, byMessage := outcome(t, func(d wakebell.Draft) (time.Time, int) {
			s := asked[*messages.ScheduleResponse](t, p, stacktest.Message(t, d))
			return s.GetDue().AsTime(), int(s.GetOutcome())
		})
		require.Equal(t, byCall, byMessage, name)
		require.WithinDuration(t, dueByCall, dueByMessage, stacktest.Patience, name)
	}

	once := p.Topic.Draft("x", wakebell.ID("once"), hour, wakebell.Once(time.Hour))
	asked[*messages.ScheduleResponse](t, p, stacktest.Message(t, once))
	asked[*messages.CancelResponse](t, p, &messages.CancelRequest{Topic: p.Topic.Name(), Ids: []string{"once"}})
	require.Equal(t, messages.Outcome_OUTCOME_ALREADY_DONE, asked[*messages.ScheduleResponse](t, p, stacktest.Message(t, once)).GetOutcome())

	_, err := wakebell.ScheduleMessage(p.Topic.Draft("x", wakebell.ID("")))
	require.ErrorIs(t, err, wakebell.ErrInvalid)
}

// The values of the gateway's enumerations equal those of the library.
func TestEnumerationsHaveSameNumbers(t *testing.T) {
	t.Parallel()
	for name, number := range map[string]int{
		"OUTCOME_CREATED":      int(wakebelltype.OutcomeCreated),
		"OUTCOME_REPLACED":     int(wakebelltype.OutcomeReplaced),
		"OUTCOME_SUPERSEDED":   int(wakebelltype.OutcomeSuperseded),
		"OUTCOME_KEPT_PENDING": int(wakebelltype.OutcomeKeptPending),
		"OUTCOME_KEPT_RUNNING": int(wakebelltype.OutcomeKeptRunning),
		"OUTCOME_KEPT_EARLIER": int(wakebelltype.OutcomeKeptEarlier),
		"OUTCOME_MOVED":        int(wakebelltype.OutcomeMoved),
		"OUTCOME_ALREADY_DONE": int(wakebelltype.OutcomeAlreadyDone),
	} {
		require.Equal(t, name, messages.Outcome(number).String())
	}
	for name, number := range map[string]int{
		"PRESENCE_ABSENT":  int(wakebelltype.PresenceAbsent),
		"PRESENCE_PENDING": int(wakebelltype.PresencePending),
		"PRESENCE_RUNNING": int(wakebelltype.PresenceRunning),
	} {
		require.Equal(t, name, messages.Presence(number).String())
	}
	for name, policy := range map[string]wakebelltype.Policy{
		"POLICY_KEEP":     wakebelltype.PolicyKeep,
		"POLICY_EARLIEST": wakebelltype.PolicyEarliest,
	} {
		m, err := wakebell.ScheduleMessage(wakebell.NewTopic[string]("x").Draft("x", wakebell.IfExists(policy)))
		require.NoError(t, err)
		require.Equal(t, name, m.GetIfExists().String())
	}
}
