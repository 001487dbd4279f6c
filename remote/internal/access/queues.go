package access

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/queuekeys"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/wakebelltype"
)

// defaultSeparator is the separator of queues without one in their configuration.
const defaultSeparator = "::"

// QueueKeys are the queues with keys in the node's configuration, by their names
// without the System's prefix. All other queues have the default keys: a peer names
// queues, never keys.
type QueueKeys struct {
	system *wakebell.System
	named  map[string]*messages.Queue
}

// NewQueueKeys returns the keys of the configured queues.
func NewQueueKeys(system *wakebell.System, queues []wakebelltype.QueueKeys) *QueueKeys {
	k := &QueueKeys{system: system, named: map[string]*messages.Queue{}}
	for _, name := range queues {
		k.named[name.Name] = wire.QueueMessage(withoutDefault(name))
	}
	return k
}

func withoutDefault(name wakebelltype.QueueKeys) wakebelltype.QueueKeys {
	if name.Separator == defaultSeparator {
		name.Separator = ""
	}
	return name
}

// Settle sets the keys of the queue in a request about a queue. It returns an error
// if the request names other keys.
func (k *QueueKeys) Settle(request proto.Message) error {
	name, queue, is := queueIn(request)
	if !is || k == nil {
		return nil
	}
	named := k.named[name]
	if _, subscribes := request.(*messages.SubscribeRequest); subscribes && queue == nil {
		if named != nil {
			return fmt.Errorf("%w: subscribe to topic %q: the node's configuration names a queue of this name", wakebell.ErrConflict, text.Clip(name, wire.MaxShown))
		}
		return nil
	}
	if k.system.Reserves(name) {
		return argument.Invalid("queue", "the keys of %q would be among those of topics, gates or recurring schedules", text.Clip(name, wire.MaxShown))
	}
	separator := queue.GetSeparator()
	if separator == defaultSeparator && named.GetSeparator() == "" {
		separator = ""
	}
	if separator != "" && separator != named.GetSeparator() {
		return notTheNodes(name, "separator", separator)
	}
	deadLetters := queue.GetDeadLetters()
	if deadLetters != "" && deadLetters != named.GetDeadLetters() {
		return notTheNodes(name, "key of dead deadLetters", deadLetters)
	}
	if named == nil {
		named = &messages.Queue{}
	}
	r := request.ProtoReflect()
	r.Set(r.Descriptor().Fields().ByName(queueField), protoreflect.ValueOfMessage(proto.CloneOf(named).ProtoReflect()))
	return nil
}

func notTheNodes(name, what, given string) error {
	return argument.Invalid("queue", "the %s of %q is not %q: a queue has those keys that the node's configuration names (Config.Queues), else the default ones",
		what, text.Clip(name, wire.MaxShown), text.Clip(given, wire.MaxShown))
}

// queueField is the field that holds the keys, in every request about a queue.
const queueField protoreflect.Name = "queue"

// queueIn returns the queue of a request. is reports whether requests of this type
// can be about a queue.
func queueIn(request proto.Message) (name string, queue *messages.Queue, is bool) {
	switch m := request.(type) {
	case *messages.SubscribeRequest:
		return m.GetTopic(), m.GetQueue(), true
	case wire.OfQueue:
		return m.GetName(), m.GetQueue(), true
	}
	return "", nil, false
}

// ValidQueues returns the errors in the queues of a configuration.
func ValidQueues(queues []wakebelltype.QueueKeys) (errs []error) {
	seen := map[string]bool{}
	for _, name := range queues {
		if err := queuekeys.Check(name); err != nil {
			errs = append(errs, fmt.Errorf("config: Queues: %w", err))
		}
		if seen[name.Name] {
			errs = append(errs, argument.Invalid("Queues", "%q is named twice", text.Clip(name.Name, wire.MaxShown)))
		}
		seen[name.Name] = true
	}
	return errs
}
