package access

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/rights"
)

func reminderTopics() *ReminderTopics {
	return &ReminderTopics{prefix: "shop.", reserved: func(topic string) bool { return topic == "reminders" }}
}

// TestRequestsReachNoTopicOfReminders goes through the table: a request that handles or
// schedules is refused for a topic of reminders, unless it writes no body and takes no lease.
func TestRequestsReachNoTopicOfReminders(t *testing.T) {
	t.Parallel()
	r := reminderTopics()
	var permitted []string
	refused := 0
	for full, needs := range Needs {
		name := full[strings.LastIndex(full, ".")+1:]
		for _, topic := range []string{"reminders", "orders"} {
			request := filled(t, full)
			setNames(request.ProtoReflect(), topic)
			if m, ok := request.(*messages.ImportRecurringRequest); ok {
				m.Schedule = &messages.RecurringDump{Definition: definition("shop." + topic)}
			}
			reaches := slices.ContainsFunc(needs(request), func(n need) bool {
				return n.action == rights.ActionHandle && !slices.Contains(n.kinds, rights.KindGate) ||
					n.action == rights.ActionSchedule && slices.Contains(n.kinds, rights.KindTopic)
			})
			err := r.Check(request)
			switch {
			case topic == "orders" || !reaches:
				require.NoError(t, err, name)
			case err == nil:
				permitted = append(permitted, name)
			default:
				require.ErrorIs(t, err, wakebell.ErrInvalid, name)
				refused++
			}
		}
	}
	slices.Sort(permitted)
	require.Equal(t, []string{"CancelRequest", "ForgetReminderRequest", "RescheduleRequest", "RunNowRequest", "SetReminderRequest"}, permitted)
	require.Positive(t, refused)
}

// setNames sets the topics of a request, and of the messages in it.
func setNames(m protoreflect.Message, topic string) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		switch f := fields.Get(i); {
		case f.Name() == "topics":
			m.Mutable(f).List().Append(protoreflect.ValueOfString(topic))
		case f.Name() == "topic":
			m.Set(f, protoreflect.ValueOfString(topic))
		case f.IsList() && f.Message() != nil:
			for i := range m.Get(f).List().Len() {
				setNames(m.Mutable(f).List().Get(i).Message(), topic)
			}
		}
	}
}

// TestTopicsInsideRequestsAreChecked covers the topics that a request names besides its own.
func TestTopicsInsideRequestsAreChecked(t *testing.T) {
	t.Parallel()
	r := reminderTopics()
	part := []*messages.TimerPart{{Topic: "orders"}, {Topic: "reminders"}}
	for _, request := range []proto.Message{
		&messages.ScheduleRequest{Topic: "orders", After: part},
		&messages.ScheduleRequest{Topic: "orders", PartOf: part},
		&messages.ScheduleBatchRequest{Timers: []*messages.ScheduleRequest{{Topic: "orders"}, {Topic: "reminders"}}},
		&messages.AddPartsRequest{Topic: "orders", Parts: part},
		&messages.SubscribeRequest{Topic: "reminders", Queue: &messages.Queue{}}, // its verdicts do not say that it is a queue
		dumped("x", `{"topic":"shop.reminders"}`),
		dumped("shop.reminders", ``),
		dumped("x", `{"TOPIC":"shop.reminders"}`),
		dumped("x", `{"topic":"shop.orders","outbox":[{"topic":"shop.orders"},{"topic":"shop.reminders"}]}`),
	} {
		require.ErrorIs(t, r.Check(request), wakebell.ErrInvalid, "%v", request)
	}
	require.NoError(t, r.Check(dumped("shop.reminders", `{"topic":"shop.orders","outbox":[{"topic":"shop.orders"}]}`)))
	require.NoError(t, (*ReminderTopics)(nil).Check(&messages.ScheduleRequest{Topic: "reminders"}))
}

func dumped(task, wakebell string) *messages.ImportRecurringRequest {
	return &messages.ImportRecurringRequest{Schedule: &messages.RecurringDump{
		Name: "x", Definition: definition(task), Wakebell: []byte(wakebell),
	}}
}

// definition is an entry of RedBeat.
func definition(task string) []byte {
	return []byte(`{"name":"x","task":"` + task + `","args":[],"kwargs":{},"options":{},"schedule":{"__type__":"interval","every":60,"relative":false},"enabled":true}`)
}
