package remote

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/messages"
)

func fullName(m proto.Message) string { return string(proto.MessageName(m)) }

// What the gateway takes itself, what subscriptions and gates take in its name,
// and what all answer.
var (
	requests = names(
		&messages.ScheduleRequest{}, &messages.ScheduleBatchRequest{}, &messages.CancelRequest{}, &messages.GetTimerRequest{},
		&messages.ListTimersRequest{}, &messages.RescheduleRequest{}, &messages.RunNowRequest{}, &messages.GetTopicStatsRequest{},
		&messages.PutRecurringRequest{}, &messages.DeleteRecurringRequest{}, &messages.EnableRecurringRequest{}, &messages.RunRecurringRequest{},
		&messages.GetRecurringRequest{}, &messages.ListRecurringRequest{}, &messages.PreviewRecurringRequest{},
		&messages.PublishRequest{}, &messages.GuardTurnRequest{},
	)
	subscribing = names(&messages.SubscribeRequest{}, &messages.UnsubscribeRequest{}, &messages.Verdicts{})
	turning     = names(&messages.AcquireTurnRequest{}, &messages.ExtendTurnRequest{}, &messages.ReleaseTurnRequest{})
	answers     = names(
		&messages.Error{}, &messages.ScheduleResponse{}, &messages.ScheduleBatchResponse{}, &messages.CancelResponse{},
		&messages.GetTimerResponse{}, &messages.ListTimersResponse{}, &messages.RescheduleResponse{}, &messages.RunNowResponse{},
		&messages.GetTopicStatsResponse{}, &messages.SubscribeResponse{}, &messages.UnsubscribeResponse{},
		&messages.PutRecurringResponse{}, &messages.DeleteRecurringResponse{}, &messages.EnableRecurringResponse{},
		&messages.RunRecurringResponse{}, &messages.GetRecurringResponse{}, &messages.ListRecurringResponse{},
		&messages.PreviewRecurringResponse{}, &messages.PublishResponse{}, &messages.GuardTurnResponse{},
		&messages.Turn{}, &messages.TurnRefused{}, &messages.ExtendTurnResponse{}, &messages.ReleaseTurnResponse{},
	)
	// What the reminders take: wishes, and the answers of those who are reminded.
	reminding = names(&messages.SetReminderRequest{}, &messages.ForgetReminderRequest{})
	reminded  = names(&messages.Ack{}, &messages.Nack{}, &messages.Reject{})
	reminders = names(&messages.SetReminderResponse{}, &messages.ForgetReminderResponse{}, &messages.ReminderFailed{})
	// undelivered answers what found no actor.
	undelivered = fullName(&actor.DeadLetterResponse{})

	// heavy are questions and answers with bodies, or many lines.
	heavy = set(names(
		&messages.GetTimerRequest{}, &messages.ListTimersRequest{}, &messages.GetTimerResponse{}, &messages.ListTimersResponse{},
		&messages.ListRecurringRequest{}, &messages.ListRecurringResponse{}, &messages.PreviewRecurringRequest{}, &messages.PreviewRecurringResponse{},
	))
)

// forSubscriber is what subscribers are sent without having asked. Without an
// extension a lease ends earlier, so there is no harm in dropping one.
var (
	forSubscriber = set(names(&messages.Leases{}, &messages.LeasesEnded{}, &messages.LeasesExtended{}))
	extensions    = fullName(&messages.LeasesExtended{})
)

// waitsLong are requests that are answered when it is their turn, endsLongWait
// their answers.
var (
	waitsLong    = set(names(&messages.AcquireTurnRequest{}))
	endsLongWait = set(names(&messages.Turn{}, &messages.TurnRefused{}))
)

// isAnswered are what is answered with one of answers or reminders.
var isAnswered = set(slices.Concat(requests, turning, reminding, names(&messages.SubscribeRequest{}, &messages.UnsubscribeRequest{})))

var isAnswer = set(slices.Concat(answers, reminders, []string{undelivered}))

func names(of ...proto.Message) []string {
	all := make([]string, len(of))
	for i, m := range of {
		all[i] = fullName(m)
	}
	return all
}

func set(names []string) map[string]bool {
	all := make(map[string]bool, len(names))
	for _, name := range names {
		all[name] = true
	}
	return all
}
