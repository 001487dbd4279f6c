package remote

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/queue"
)

// defaultSeparator is that of a queue without a separator of its own.
const defaultSeparator = "::"

// queueKeys are the queues whose keys the node's configuration names, by their names
// without the System's prefix. The keys of all others are those that a queue has by
// default: a peer names queues, never keys.
type queueKeys struct {
	system *wakebell.System
	named  map[string]*messages.Queue
}

func newQueueKeys(system *wakebell.System, queues []queue.Keys) *queueKeys {
	k := &queueKeys{system: system, named: map[string]*messages.Queue{}}
	for _, name := range queues {
		k.named[name.Name] = queueMessage(withoutDefault(name))
	}
	return k
}

func withoutDefault(name queue.Keys) queue.Keys {
	if name.Separator == defaultSeparator {
		name.Separator = ""
	}
	return name
}

// settle writes into a request about a queue which keys the queue has. A request
// that names others is refused.
func (k *queueKeys) settle(request proto.Message) error {
	name, queue, is := queueIn(request)
	if !is || k == nil {
		return nil
	}
	named := k.named[name]
	if _, subscribes := request.(*messages.SubscribeRequest); subscribes && queue == nil {
		if named != nil {
			return fmt.Errorf("%w: subscribe to topic %q: the node's configuration names a queue of this name", wakebell.ErrConflict, clip(name))
		}
		return nil
	}
	if k.system.Reserves(name) {
		return invalid("queue", "the keys of %q would be among those of topics, gates or recurring schedules", clip(name))
	}
	separator := queue.GetSeparator()
	if separator == defaultSeparator && named.GetSeparator() == "" {
		separator = ""
	}
	if separator != "" && separator != named.GetSeparator() {
		return notTheNodes(name, "separator", separator)
	}
	letters := queue.GetDeadLetters()
	if letters != "" && letters != named.GetDeadLetters() {
		return notTheNodes(name, "key of dead letters", letters)
	}
	if named == nil {
		named = &messages.Queue{}
	}
	r := request.ProtoReflect()
	r.Set(r.Descriptor().Fields().ByName(queueField), protoreflect.ValueOfMessage(proto.CloneOf(named).ProtoReflect()))
	return nil
}

func notTheNodes(name, what, given string) error {
	return invalid("queue", "the %s of %q is not %q: a queue has those keys that the node's configuration names (Config.Queues), else the default ones",
		what, clip(name), clip(given))
}

// queueField is the field of every request about a queue that says which keys it has.
const queueField protoreflect.Name = "queue"

// queueIn is the queue that a request is about, if it is of a kind that may be
// about one.
func queueIn(request proto.Message) (name string, queue *messages.Queue, is bool) {
	switch m := request.(type) {
	case *messages.SubscribeRequest:
		return m.GetTopic(), m.GetQueue(), true
	case ofQueue:
		return m.GetName(), m.GetQueue(), true
	}
	return "", nil, false
}

// validQueues reports what is wrong with the queues of a configuration.
func validQueues(queues []queue.Keys) (errs []error) {
	seen := map[string]bool{}
	for _, name := range queues {
		if err := name.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("config: Queues: %w", err))
		}
		if seen[name.Name] {
			errs = append(errs, invalid("Queues", "%q is named twice", clip(name.Name)))
		}
		seen[name.Name] = true
	}
	return errs
}
