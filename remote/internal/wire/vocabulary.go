package wire

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/messages"
)

// FullName returns the full name of a message.
func FullName(m proto.Message) string { return string(proto.MessageName(m)) }

// Requests are handled by the gateway itself, Subscribing and Turning by the actors
// of subscriptions and gates on its behalf. answers are the responses of all three.
var (
	Requests = names(
		&messages.ScheduleRequest{}, &messages.ScheduleBatchRequest{}, &messages.CancelRequest{}, &messages.GetTimerRequest{},
		&messages.ListTimersRequest{}, &messages.RescheduleRequest{}, &messages.RunNowRequest{}, &messages.GetTopicStatsRequest{},
		&messages.PutRecurringRequest{}, &messages.DeleteRecurringRequest{}, &messages.EnableRecurringRequest{}, &messages.RunRecurringRequest{},
		&messages.GetRecurringRequest{}, &messages.ListRecurringRequest{}, &messages.PreviewRecurringRequest{},
		&messages.PublishRequest{}, &messages.GuardTurnRequest{},
		&messages.GetJoinRequest{}, &messages.ListPartsRequest{}, &messages.AddPartsRequest{}, &messages.CloseJoinRequest{}, &messages.CancelJoinRequest{},
	)
	Subscribing = names(&messages.SubscribeRequest{}, &messages.UnsubscribeRequest{}, &messages.Verdicts{}, &messages.KeepRequest{})
	Turning     = names(&messages.AcquireTurnRequest{}, &messages.ExtendTurnRequest{}, &messages.ReleaseTurnRequest{})
	answers     = names(
		&messages.Error{}, &messages.ScheduleResponse{}, &messages.ScheduleBatchResponse{}, &messages.CancelResponse{},
		&messages.GetTimerResponse{}, &messages.ListTimersResponse{}, &messages.RescheduleResponse{}, &messages.RunNowResponse{},
		&messages.GetTopicStatsResponse{}, &messages.SubscribeResponse{}, &messages.UnsubscribeResponse{}, &messages.KeepResponse{},
		&messages.PutRecurringResponse{}, &messages.DeleteRecurringResponse{}, &messages.EnableRecurringResponse{},
		&messages.RunRecurringResponse{}, &messages.GetRecurringResponse{}, &messages.ListRecurringResponse{},
		&messages.PreviewRecurringResponse{}, &messages.PublishResponse{}, &messages.GuardTurnResponse{},
		&messages.GetJoinResponse{}, &messages.ListPartsResponse{}, &messages.AddPartsResponse{}, &messages.CloseJoinResponse{}, &messages.CancelJoinResponse{},
		&messages.Turn{}, &messages.TurnRefused{}, &messages.ExtendTurnResponse{}, &messages.ReleaseTurnResponse{},
	)
	// Reminding are requests to the reminders. Reminded are the verdicts of the actors
	// that receive reminders.
	Reminding = names(&messages.SetReminderRequest{}, &messages.ForgetReminderRequest{})
	Reminded  = names(&messages.Ack{}, &messages.Nack{}, &messages.Reject{})
	reminders = names(&messages.SetReminderResponse{}, &messages.ForgetReminderResponse{}, &messages.ReminderFailed{})
	// undelivered is the response to a message without a recipient.
	undelivered = FullName(&actor.DeadLetterResponse{})

	// Heavy are requests and responses with bodies or many entries.
	Heavy = SetOf(names(
		&messages.GetTimerRequest{}, &messages.ListTimersRequest{}, &messages.GetTimerResponse{}, &messages.ListTimersResponse{},
		&messages.ListRecurringRequest{}, &messages.ListRecurringResponse{}, &messages.PreviewRecurringRequest{}, &messages.PreviewRecurringResponse{},
		&messages.ListPartsRequest{}, &messages.ListPartsResponse{},
	))
)

// ForSubscriber are messages to subscribers that are no responses. Extensions may be
// dropped: without one a lease only ends earlier.
var (
	ForSubscriber = SetOf(names(&messages.Leases{}, &messages.LeasesEnded{}, &messages.LeasesExtended{}))
	Extensions    = FullName(&messages.LeasesExtended{})
)

// WaitsLong are requests that wait for a turn, EndsLongWait
// are their responses.
var (
	WaitsLong    = SetOf(names(&messages.AcquireTurnRequest{}))
	EndsLongWait = SetOf(names(&messages.Turn{}, &messages.TurnRefused{}))
)

// IsAnswered are the names of the requests that get a response.
var IsAnswered = SetOf(slices.Concat(Requests, Turning, Reminding, names(&messages.SubscribeRequest{}, &messages.UnsubscribeRequest{}, &messages.KeepRequest{})))

// IsAnswer are the names of all responses.
var IsAnswer = SetOf(slices.Concat(answers, reminders, []string{undelivered}))

func names(of ...proto.Message) []string {
	all := make([]string, len(of))
	for i, m := range of {
		all[i] = FullName(m)
	}
	return all
}

// SetOf returns a set of names.
func SetOf(names []string) map[string]bool {
	all := make(map[string]bool, len(names))
	for _, name := range names {
		all[name] = true
	}
	return all
}
