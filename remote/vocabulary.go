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
		&messages.Schedule{}, &messages.ScheduleBatch{}, &messages.Cancel{}, &messages.Get{},
		&messages.List{}, &messages.Reschedule{}, &messages.RunNow{}, &messages.Stats{},
		&messages.PutRecurring{}, &messages.DeleteRecurring{}, &messages.EnableRecurring{}, &messages.RunRecurring{},
		&messages.GetRecurring{}, &messages.ListRecurring{}, &messages.PreviewRecurring{},
		&messages.Publish{}, &messages.GuardTurn{},
	)
	subscribing = names(&messages.Subscribe{}, &messages.Unsubscribe{}, &messages.Verdicts{})
	turning     = names(&messages.AcquireTurn{}, &messages.ExtendTurn{}, &messages.ReleaseTurn{})
	answers     = names(
		&messages.Error{}, &messages.Scheduled{}, &messages.BatchScheduled{}, &messages.Cancelled{}, &messages.Timer{},
		&messages.TimerPage{}, &messages.DueNow{}, &messages.TopicStats{}, &messages.Subscribed{}, &messages.Unsubscribed{},
		&messages.RecurringChanged{}, &messages.RecurringRun{}, &messages.RecurringState{}, &messages.RecurringPage{},
		&messages.RecurringInstants{}, &messages.MessagesPublished{}, &messages.TurnGuarded{},
		&messages.Turn{}, &messages.TurnRefused{}, &messages.TurnExtended{}, &messages.TurnReleased{},
	)
	// What the reminders take: wishes, and the answers of those who are reminded.
	reminding = names(&messages.SetReminder{}, &messages.ForgetReminder{})
	reminded  = names(&messages.Ack{}, &messages.Nack{}, &messages.Reject{})
	reminders = names(&messages.ReminderSet{}, &messages.ReminderForgotten{}, &messages.ReminderFailed{})
	// undelivered answers what found no actor.
	undelivered = fullName(&actor.DeadLetterResponse{})

	// heavy are questions and answers with bodies, or many lines.
	heavy = set(names(
		&messages.Get{}, &messages.List{}, &messages.Timer{}, &messages.TimerPage{},
		&messages.ListRecurring{}, &messages.RecurringPage{}, &messages.PreviewRecurring{}, &messages.RecurringInstants{},
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
	waitsLong    = set(names(&messages.AcquireTurn{}))
	endsLongWait = set(names(&messages.Turn{}, &messages.TurnRefused{}))
)

// isAnswered are what is answered with one of answers or reminders.
var isAnswered = set(slices.Concat(requests, turning, reminding, names(&messages.Subscribe{}, &messages.Unsubscribe{})))

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
