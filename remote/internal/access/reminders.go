package access

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/hosted"
	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/remote/rights"
)

// ReminderTopics are the topics of reminders, of all nodes. The body of a timer there names
// the actor that receives it: a peer that could write one, or take the lease of one and
// replace its body, would reach any actor of any node.
type ReminderTopics struct {
	prefix   string // of the System; exported schedules name topics with it
	reserved func(topic string) bool
}

// NewReminderTopics returns the topics that the nodes of a System's Redis may have.
func NewReminderTopics(system *wakebell.System) *ReminderTopics {
	reminders := system.Reminders()
	return &ReminderTopics{
		prefix:   system.Client().Prefix(),
		reserved: func(topic string) bool { return hosted.IsReminderTopic(reminders, topic) },
	}
}

// Check returns an error if a request writes bodies to a topic of reminders, or takes its
// timers.
func (r *ReminderTopics) Check(request proto.Message) error {
	if r == nil || !r.reaches(request) {
		return nil
	}
	return argument.Invalid("topic", "it is that of reminders; use SetReminder")
}

// reaches decides by the rights that a request needs, so that a request that is new in the
// table is refused unless harmless has it. The most frequent requests avoid the table.
func (r *ReminderTopics) reaches(request proto.Message) bool {
	switch m := request.(type) {
	case *messages.ScheduleRequest:
		if r.reserved(m.GetTopic()) {
			return true
		}
		if len(m.GetAfter()) == 0 && len(m.GetPartOf()) == 0 {
			return false
		}
	case *messages.Verdicts:
		return r.reserved(m.GetTopic())
	case *messages.ImportRecurringRequest:
		return r.imports(m.GetSchedule())
	}
	name := wire.FullName(request)
	of, known := Needs[name]
	return known && !harmless[name] && slices.ContainsFunc(of(request), func(n need) bool {
		return n.reaches() && r.reserved(n.name)
	})
}

// reaches reports whether a right is one to write or take timers. A name is also reserved for
// the subscriptions to queues, because their verdicts do not say which of the two they are
// about.
func (n need) reaches() bool {
	return n.action == rights.ActionHandle && !slices.Contains(n.kinds, rights.KindGate) ||
		n.action == rights.ActionSchedule && slices.Contains(n.kinds, rights.KindTopic)
}

// harmless are the requests that need a right to schedule and write no body: those about
// stored timers, and those to the actor of the reminders, which sets the recipient.
var harmless = wire.SetOf([]string{
	wire.FullName(&messages.CancelRequest{}), wire.FullName(&messages.RescheduleRequest{}), wire.FullName(&messages.RunNowRequest{}),
	wire.FullName(&messages.SetReminderRequest{}), wire.FullName(&messages.ForgetReminderRequest{}),
})

// imports reports whether an exported schedule has runs on such a topic, also those that were
// fired before and are not stored yet. One that cannot be read cannot be imported.
func (r *ReminderTopics) imports(dump *messages.RecurringDump) bool {
	ours, err := recur.ReadOurs(dump.GetWakebell())
	if err != nil {
		return false
	}
	task, err := recur.ReadDefinition(recur.Native(dump.GetDefinition()))
	if err != nil {
		return false
	}
	names := []string{recur.Entry{Definition: task, Ours: ours}.Topic()}
	for _, put := range ours.Outbox {
		names = append(names, put.Topic)
	}
	return slices.ContainsFunc(names, func(full string) bool { return r.reserved(strings.TrimPrefix(full, r.prefix)) })
}
