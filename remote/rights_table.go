package remote

import (
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/reminder"
)

// need is a right that a request takes: the action on the name, as one of the
// kinds. With every it takes the action on all names.
type need struct {
	action Action
	kinds  []Kind
	name   string
	every  bool
}

// needs of each request, by its full name: the one place that decides what a request
// takes. A request that is not in it is refused where there are rights.
//
// What has no needs is answered by what the caller may read (the listings), or names
// something that only its owner knows (answers to reminders).
var needs = tableOf(
	onTopic[*messages.Schedule](ActionSchedule),
	rule(func(m *messages.ScheduleBatch) (all []need) {
		for _, s := range m.GetTimers() {
			all = append(all, topic(ActionSchedule, s.GetTopic()))
		}
		return all
	}),
	onTopic[*messages.Cancel](ActionSchedule),
	onTopic[*messages.Get](ActionRead),
	onTopic[*messages.List](ActionRead),
	onTopic[*messages.Reschedule](ActionSchedule),
	onTopic[*messages.RunNow](ActionSchedule),
	onTopic[*messages.Stats](ActionRead),

	rule(func(m *messages.Subscribe) []need {
		if m.GetQueue() != nil {
			return []need{{action: ActionHandle, kinds: []Kind{KindQueue}, name: m.GetTopic()}}
		}
		return []need{topic(ActionHandle, m.GetTopic())}
	}),
	// These do not tell a topic from a queue, and are only about what was subscribed to.
	rule(func(m *messages.Unsubscribe) []need { return subscribed(m.GetTopic()) }),
	rule(func(m *messages.Verdicts) []need { return subscribed(m.GetTopic()) }),

	onName[*messages.Publish](KindQueue, ActionSchedule),

	rule(func(m *messages.PutRecurring) (all []need) {
		for _, s := range m.GetSchedules() {
			all = append(all, schedule(ActionSchedule, s.GetName()))
			if s.GetCelery() == nil { // else it is a task, and the node says where tasks may go
				all = append(all, topic(ActionSchedule, s.GetTopic()))
			}
		}
		return all
	}),
	onName[*messages.DeleteRecurring](KindSchedule, ActionSchedule),
	onName[*messages.EnableRecurring](KindSchedule, ActionSchedule),
	onName[*messages.RunRecurring](KindSchedule, ActionSchedule),
	onName[*messages.GetRecurring](KindSchedule, ActionRead),
	free[*messages.ListRecurring](), // filtered
	onName[*messages.PreviewRecurring](KindSchedule, ActionRead),

	onGate[*messages.AcquireTurn](ActionHandle),
	onGate[*messages.ExtendTurn](ActionHandle),
	onGate[*messages.ReleaseTurn](ActionHandle),
	onGate[*messages.GuardTurn](ActionHandle),

	// A reminder is a timer of the sender's own in the topic of the reminders.
	rule(func(*messages.SetReminder) []need { return []need{topic(ActionSchedule, remindersTopic)} }),
	rule(func(*messages.ForgetReminder) []need { return []need{topic(ActionSchedule, remindersTopic)} }),
	free[*messages.Ack](), free[*messages.Nack](), free[*messages.Reject](),

	rule(func(m *messages.ListTopics) []need {
		if m.GetDiscover() { // it walks over all keys
			return []need{{action: ActionOperate, kinds: []Kind{KindTopic}, every: true}}
		}
		return nil // filtered
	}),
	rule(func(m *messages.LookAtTopics) []need { return topics(ActionRead, m.GetTopics()) }),
	onTopic[*messages.CancelAll](ActionOperate),
	onTopic[*messages.ForgetTopic](ActionOperate),
	onTopic[*messages.GetOrders](ActionRead),
	onTopic[*messages.PauseTopic](ActionOperate),
	onTopic[*messages.ResumeTopic](ActionOperate),
	onTopic[*messages.RetuneTopic](ActionOperate),
	rule(func(m *messages.Diagnose) []need { // it tells of the servers as well
		if len(m.GetTopics()) == 0 {
			return []need{{action: ActionOperate, kinds: []Kind{KindTopic}, every: true}}
		}
		return topics(ActionOperate, m.GetTopics())
	}),
	onTopic[*messages.Tail](ActionRead),
	onTopic[*messages.ListDead](ActionRead),
	onTopic[*messages.GetDead](ActionRead),
	onTopic[*messages.RedriveDead](ActionOperate),
	onTopic[*messages.DeleteDead](ActionOperate),

	onName[*messages.GetQueueStats](KindQueue, ActionRead),
	onName[*messages.ListQueue](KindQueue, ActionRead),
	onName[*messages.PurgeQueue](KindQueue, ActionOperate),
	onName[*messages.ListQueueLetters](KindQueue, ActionRead),
	onName[*messages.GetQueueLetter](KindQueue, ActionRead),
	onName[*messages.RedriveQueueLetter](KindQueue, ActionOperate),
	onName[*messages.DeleteQueueLetters](KindQueue, ActionOperate),

	free[*messages.ListGates](), // filtered
	onGate[*messages.ShowGate](ActionRead),
	onGate[*messages.ReleaseGate](ActionOperate),
	onGate[*messages.RepairGate](ActionOperate),
	onGate[*messages.RemoveGate](ActionOperate),

	onName[*messages.ExportRecurring](KindSchedule, ActionRead),
	rule(func(m *messages.ImportRecurring) []need { // its text says on which topic it runs
		return []need{
			schedule(ActionOperate, m.GetSchedule().GetName()),
			{action: ActionSchedule, kinds: []Kind{KindTopic}, every: true},
		}
	}),
	onName[*messages.BackfillRecurring](KindSchedule, ActionOperate),
)

// remindersTopic is what a right to set reminders names, whatever the topic is called
// at the node.
const remindersTopic = reminder.DefaultTopic

func topic(a Action, name string) need {
	return need{action: a, kinds: []Kind{KindTopic}, name: name}
}

func schedule(a Action, name string) need {
	return need{action: a, kinds: []Kind{KindSchedule}, name: name}
}

func topics(a Action, names []string) (all []need) {
	for _, name := range names {
		all = append(all, topic(a, name))
	}
	return all
}

func subscribed(name string) []need {
	return []need{{action: ActionHandle, kinds: []Kind{KindTopic, KindQueue}, name: name}}
}

// requestRule says what requests of a name need.
type requestRule struct {
	name  string
	needs func(proto.Message) []need
}

func rule[M proto.Message](of func(M) []need) requestRule {
	var m M
	return requestRule{fullName(m), func(m proto.Message) []need {
		typed, _ := m.(M) // which the table is asked for
		return of(typed)
	}}
}

func free[M proto.Message]() requestRule { return rule(func(M) []need { return nil }) }

func onTopic[M interface {
	proto.Message
	GetTopic() string
}](a Action) requestRule {
	return rule(func(m M) []need { return []need{topic(a, m.GetTopic())} })
}

func onGate[M interface {
	proto.Message
	GetGate() string
}](a Action) requestRule {
	return rule(func(m M) []need { return []need{{action: a, kinds: []Kind{KindGate}, name: m.GetGate()}} })
}

func onName[M interface {
	proto.Message
	GetName() string
}](kind Kind, a Action) requestRule {
	return rule(func(m M) []need { return []need{{action: a, kinds: []Kind{kind}, name: m.GetName()}} })
}

func tableOf(rules ...requestRule) map[string]func(proto.Message) []need {
	table := make(map[string]func(proto.Message) []need, len(rules))
	for _, r := range rules {
		table[r.name] = r.needs
	}
	return table
}
