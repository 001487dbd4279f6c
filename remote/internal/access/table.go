package access

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/reminder"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/remote/rights"
	"github.com/wakebell/wakebell/wakebelltype"
)

// need is a right that a request takes: the action on the name, as one of the kinds.
// With every it takes the action on all names.
type need struct {
	action rights.Action
	kinds  []rights.Kind
	name   string
	every  bool
}

// Needs maps the full name of each request to the rights that it needs. It is the
// only place that decides this. A node with rights refuses requests that are not in it.
//
// Requests without needs are listings, whose responses are filtered, verdicts on
// reminders, whose delivery only the owner knows, and the release of a turn.
var Needs = tableOf(
	rule(scheduled),
	rule(func(m *messages.ScheduleBatchRequest) (all []need) {
		for _, s := range m.GetTimers() {
			all = append(all, scheduled(s)...)
		}
		return all
	}),
	onTopic[*messages.CancelRequest](rights.ActionSchedule),
	onTopic[*messages.GetTimerRequest](rights.ActionRead),
	onTopic[*messages.ListTimersRequest](rights.ActionRead),
	onTopic[*messages.RescheduleRequest](rights.ActionSchedule),
	onTopic[*messages.RunNowRequest](rights.ActionSchedule),
	onTopic[*messages.GetTopicStatsRequest](rights.ActionRead),

	onTopic[*messages.GetJoinRequest](rights.ActionRead),
	onTopic[*messages.ListPartsRequest](rights.ActionRead), // the node checks the topics of the parts
	rule(func(m *messages.AddPartsRequest) []need {
		return joined([]need{topic(rights.ActionSchedule, m.GetTopic())}, m.GetParts())
	}),
	onTopic[*messages.CloseJoinRequest](rights.ActionSchedule),
	rule(func(m *messages.CancelJoinRequest) []need { // it cancels parts on these topics only
		return append(topics(rights.ActionSchedule, m.GetTopics()), topic(rights.ActionSchedule, m.GetTopic()))
	}),

	rule(func(m *messages.SubscribeRequest) []need {
		if m.GetQueue() != nil {
			return []need{{action: rights.ActionHandle, kinds: []rights.Kind{rights.KindQueue}, name: m.GetTopic()}}
		}
		return []need{topic(rights.ActionHandle, m.GetTopic())}
	}),
	// These do not distinguish topics from queues. They only act on existing subscriptions.
	rule(func(m *messages.UnsubscribeRequest) []need { return subscribed(m.GetTopic()) }),
	rule(func(m *messages.Verdicts) []need { return subscribed(m.GetTopic()) }),
	rule(func(m *messages.KeepRequest) []need { return subscribed(m.GetTopic()) }),

	onName[*messages.PublishRequest](rights.KindQueue, rights.ActionSchedule),

	rule(func(m *messages.PutRecurringRequest) (all []need) {
		for _, s := range m.GetSchedules() {
			all = append(all, schedule(rights.ActionSchedule, s.GetName()))
			if s.GetCelery() == nil { // the node's configuration bounds the queues of Celery tasks
				all = append(all, topic(rights.ActionSchedule, s.GetTopic()))
			}
		}
		return all
	}),
	onName[*messages.DeleteRecurringRequest](rights.KindSchedule, rights.ActionSchedule),
	onName[*messages.EnableRecurringRequest](rights.KindSchedule, rights.ActionSchedule),
	onName[*messages.RunRecurringRequest](rights.KindSchedule, rights.ActionSchedule),
	onName[*messages.GetRecurringRequest](rights.KindSchedule, rights.ActionRead),
	free[*messages.ListRecurringRequest](), // filtered
	onName[*messages.PreviewRecurringRequest](rights.KindSchedule, rights.ActionRead),

	onGate[*messages.AcquireTurnRequest](rights.ActionHandle),
	onGate[*messages.ExtendTurnRequest](rights.ActionHandle),
	free[*messages.ReleaseTurnRequest](), // only its owner can release a turn, also without a right to further ones
	onGate[*messages.GuardTurnRequest](rights.ActionHandle),

	// A reminder is a timer in the topic of the reminders.
	rule(func(*messages.SetReminderRequest) []need { return []need{topic(rights.ActionSchedule, remindersTopic)} }),
	rule(func(*messages.ForgetReminderRequest) []need {
		return []need{topic(rights.ActionSchedule, remindersTopic)}
	}),
	free[*messages.Ack](), free[*messages.Nack](), free[*messages.Reject](),

	rule(func(m *messages.ListTopicsRequest) []need {
		if m.GetDiscover() { // it scans all keys
			return []need{{action: rights.ActionOperate, kinds: []rights.Kind{rights.KindTopic}, every: true}}
		}
		return nil // filtered
	}),
	rule(func(m *messages.GetOverviewsRequest) []need { return topics(rights.ActionRead, m.GetTopics()) }),
	onTopic[*messages.CancelAllRequest](rights.ActionOperate),
	onTopic[*messages.ForgetTopicRequest](rights.ActionOperate),
	onTopic[*messages.RemoveTopicRequest](rights.ActionOperate),
	onTopic[*messages.GetTopicShardsRequest](rights.ActionRead),
	onTopic[*messages.DivideTopicRequest](rights.ActionOperate),
	onTopic[*messages.ReshardTopicRequest](rights.ActionOperate),
	onTopic[*messages.GetTopicControlRequest](rights.ActionRead),
	onTopic[*messages.PauseTopicRequest](rights.ActionOperate),
	onTopic[*messages.ResumeTopicRequest](rights.ActionOperate),
	onTopic[*messages.RetuneTopicRequest](rights.ActionOperate),
	rule(func(m *messages.DiagnoseRequest) []need { // it reports on the servers as well
		if len(m.GetTopics()) == 0 {
			return []need{{action: rights.ActionOperate, kinds: []rights.Kind{rights.KindTopic}, every: true}}
		}
		return topics(rights.ActionOperate, m.GetTopics())
	}),
	onTopic[*messages.TailRequest](rights.ActionRead),
	onTopic[*messages.WaitTimerRequest](rights.ActionRead),
	rule(func(m *messages.AskNodesRequest) []need { return topics(rights.ActionRead, m.GetTopics()) }),
	onTopic[*messages.ListDeadLettersRequest](rights.ActionRead),
	onTopic[*messages.GetDeadLetterRequest](rights.ActionRead),
	onTopic[*messages.RedriveDeadLettersRequest](rights.ActionOperate),
	onTopic[*messages.DeleteDeadLettersRequest](rights.ActionOperate),

	free[*messages.ListQueuesRequest](), // filtered
	onName[*messages.GetQueueStatsRequest](rights.KindQueue, rights.ActionRead),
	onName[*messages.ListQueueMessagesRequest](rights.KindQueue, rights.ActionRead),
	onName[*messages.RemoveQueueRequest](rights.KindQueue, rights.ActionOperate),
	onName[*messages.PurgeQueueRequest](rights.KindQueue, rights.ActionOperate),
	onName[*messages.ListQueueDeadLettersRequest](rights.KindQueue, rights.ActionRead),
	onName[*messages.GetQueueDeadLetterRequest](rights.KindQueue, rights.ActionRead),
	onName[*messages.RedriveQueueDeadLetterRequest](rights.KindQueue, rights.ActionOperate),
	onName[*messages.DeleteQueueDeadLettersRequest](rights.KindQueue, rights.ActionOperate),
	onName[*messages.GetQueueThroughputRequest](rights.KindQueue, rights.ActionRead),
	onName[*messages.ListQueueHistoryRequest](rights.KindQueue, rights.ActionRead),

	free[*messages.ListGatesRequest](), // filtered
	onGate[*messages.GetGateRequest](rights.ActionRead),
	onGate[*messages.ReleaseGateRequest](rights.ActionOperate),
	onGate[*messages.RepairGateRequest](rights.ActionOperate),
	onGate[*messages.RemoveGateRequest](rights.ActionOperate),

	onName[*messages.ExportRecurringRequest](rights.KindSchedule, rights.ActionRead),
	rule(func(m *messages.ImportRecurringRequest) []need { // the topic is inside the exported definition
		return []need{
			schedule(rights.ActionOperate, m.GetSchedule().GetName()),
			{action: rights.ActionSchedule, kinds: []rights.Kind{rights.KindTopic}, every: true},
		}
	}),
	onName[*messages.ListRecurringInstantsRequest](rights.KindSchedule, rights.ActionRead),
	onName[*messages.BackfillRecurringRequest](rights.KindSchedule, rights.ActionOperate),

	onTopic[*messages.CountDueRequest](rights.ActionRead),
	onTopic[*messages.GetThroughputRequest](rights.ActionRead),
	onTopic[*messages.ListHistoryRequest](rights.ActionRead),
	rule(func(m *messages.RecordChangeRequest) []need {
		kind := rights.KindTopic
		if wakebelltype.AuditOperation(m.GetOperation()).Kind() == "queue" {
			kind = rights.KindQueue
		}
		return []need{{action: rights.ActionOperate, kinds: []rights.Kind{kind}, name: m.GetName()}}
	}),
	rule(func(*messages.ListAuditRequest) []need { // it names topics, queues, gates, schedules and callers
		return []need{{action: rights.ActionOperate, kinds: []rights.Kind{rights.KindTopic}, every: true}}
	}),
)

// remindersTopic is the name that rights use for reminders. Their topic at the node may
// have another name.
const remindersTopic = reminder.DefaultTopic

func topic(a rights.Action, name string) need {
	return need{action: a, kinds: []rights.Kind{rights.KindTopic}, name: name}
}

func schedule(a rights.Action, name string) need {
	return need{action: a, kinds: []rights.Kind{rights.KindSchedule}, name: name}
}

func topics(a rights.Action, names []string) (all []need) {
	for _, name := range names {
		all = append(all, topic(a, name))
	}
	return all
}

// scheduled returns the needs of a timer that is scheduled. It changes the joins of which it
// is a part, which tell how it ends.
func scheduled(m *messages.ScheduleRequest) []need {
	all := joined([]need{topic(rights.ActionSchedule, m.GetTopic())}, m.GetAfter())
	if len(m.GetPartOf()) > 0 {
		all = append(all, topic(rights.ActionRead, m.GetTopic()))
	}
	for _, name := range topicsOf(m.GetPartOf()) {
		all = append(all, topic(rights.ActionSchedule, name))
	}
	return all
}

// joined adds the needs of the parts of a join: it changes their timers, and tells how they
// end.
func joined(all []need, parts []*messages.TimerPart) []need {
	for _, name := range topicsOf(parts) {
		all = append(all, topic(rights.ActionSchedule, name), topic(rights.ActionRead, name))
	}
	return all
}

// topicsOf returns the topics of parts, each once.
func topicsOf(parts []*messages.TimerPart) (names []string) {
	if len(parts) == 0 {
		return nil
	}
	seen := map[string]bool{}
	for _, p := range parts {
		if name := p.GetTopic(); !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

func subscribed(name string) []need {
	return []need{{action: rights.ActionHandle, kinds: []rights.Kind{rights.KindTopic, rights.KindQueue}, name: name}}
}

// requestRule returns the needs of the requests with a full name.
type requestRule struct {
	name  string
	needs func(proto.Message) []need
}

func rule[M proto.Message](of func(M) []need) requestRule {
	var m M
	return requestRule{wire.FullName(m), func(m proto.Message) []need {
		typed, _ := m.(M) // the table is keyed by the type
		return of(typed)
	}}
}

func free[M proto.Message]() requestRule { return rule(func(M) []need { return nil }) }

func onTopic[M interface {
	proto.Message
	GetTopic() string
}](a rights.Action) requestRule {
	return rule(func(m M) []need { return []need{topic(a, m.GetTopic())} })
}

func onGate[M interface {
	proto.Message
	GetGate() string
}](a rights.Action) requestRule {
	return rule(func(m M) []need { return []need{{action: a, kinds: []rights.Kind{rights.KindGate}, name: m.GetGate()}} })
}

func onName[M interface {
	proto.Message
	GetName() string
}](kind rights.Kind, a rights.Action) requestRule {
	return rule(func(m M) []need { return []need{{action: a, kinds: []rights.Kind{kind}, name: m.GetName()}} })
}

func tableOf(rules ...requestRule) map[string]func(proto.Message) []need {
	table := make(map[string]func(proto.Message) []need, len(rules))
	for _, r := range rules {
		table[r.name] = r.needs
	}
	return table
}

func (n need) String() string {
	name := fmt.Sprintf("%q", text.Clip(n.name, wire.MaxShown))
	if n.every {
		name = "*"
	}
	return fmt.Sprintf("%s %s %s", n.action, kindsText(n.kinds), name)
}

func kindsText(kinds []rights.Kind) string {
	texts := make([]string, len(kinds))
	for i, kind := range kinds {
		texts[i] = string(kind)
	}
	return strings.Join(texts, ", ")
}

// IsGranted reports whether a principal has the right.
func (n need) IsGranted(to *rights.Grants, principal string) bool {
	for _, kind := range n.kinds {
		if n.every && to.AllowAll(principal, n.action, kind) {
			return true
		}
		if _, ok := to.Allow(principal, n.action, kind, n.name); ok && !n.every {
			return true
		}
	}
	return false
}
