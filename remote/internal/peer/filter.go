package peer

import (
	"errors"
	"fmt"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	premote "github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// The system messages that peers may send. Stop, PoisonPill and all other messages
// of package actor are rejected.
const (
	watchType      = "actor.Watch"
	unwatchType    = "actor.Unwatch"
	terminatedType = "actor.Terminated"
)

// maxID bounds the id of an actor, in bytes.
const maxID = 512 // bytes of the id of an actor

// errHostile is wrapped by the errors for messages that only a faulty or hostile
// peer sends. It ends the stream.
var errHostile = errors.New("refused")

func hostile(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errHostile, fmt.Sprintf(format, args...))
}

// Entry is a local actor that peers may send to.
type Entry struct {
	Takes map[string]string // type of message → id of the actor that receives it

	Watch      bool // peers may watch it
	Terminated bool // it watches actors of peers, so it receives Terminated
}

// filter decides which envelopes of an inbound batch reach local actors. It
// validates everything: protoactor's reader does not check the indexes and types of
// a batch, forwards to any address, and stops any actor on request.
type filter struct {
	addresses map[string]bool // addresses of this node
	celery    string          // queues that are open to peers, as the header has them

	mu      sync.RWMutex
	entries map[string]*Entry // by the actor's id
}

// Open permits peers to send to an actor, or changes what they may send.
func (f *filter) Open(id string, change func(*Entry)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := &Entry{Takes: map[string]string{}}
	if now := f.entries[id]; now != nil {
		next.Watch, next.Terminated = now.Watch, now.Terminated
		for kind, to := range now.Takes {
			next.Takes[kind] = to
		}
	}
	change(next)
	f.entries[id] = next
}

// Close forbids peers to send to an actor, which ends.
func (f *filter) Close(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.entries, id)
}

func (f *filter) entry(id string) *Entry {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.entries[id]
}

// admitted is the result for a batch.
type admitted struct {
	dropped string // why an envelope was dropped; empty: none was
}

// Admit removes the envelopes that are not permitted, and sets the header of the
// others to the sender. An error means that the peer is faulty or hostile.
func (f *filter) Admit(batch *premote.MessageBatch, from *peer) (admitted, error) {
	in := admitted{}
	if err := checkSenders(batch.GetSenders(), from); err != nil {
		return in, err
	}
	entries := make([]*Entry, len(batch.GetTargets()))
	for i, target := range batch.GetTargets() {
		if target != nil && f.addresses[target.GetAddress()] {
			entries[i] = f.entry(target.GetId())
		}
	}
	a := &admission{filter: f, batch: batch, from: from, entries: entries, in: &in, budget: wire.MaxParts}
	a.header = &premote.MessageHeader{HeaderData: Caller{Owner: from.owner, credential: from.credential, host: from.host, celery: f.celery}.Header()}
	kept := batch.Envelopes[:0]
	for _, e := range batch.GetEnvelopes() {
		ok, err := a.envelope(e)
		if err != nil {
			return in, err
		}
		if ok {
			kept = append(kept, e)
		}
	}
	clear(batch.Envelopes[len(kept):])
	batch.Envelopes = kept
	return in, nil
}

func checkSenders(senders []*actor.PID, from *peer) error {
	for _, sender := range senders {
		switch {
		case sender == nil || sender.GetId() == "" || len(sender.GetId()) > maxID:
			return hostile("a sender without a proper id")
		case sender.GetAddress() != from.address:
			return hostile("a sender at %q, which is not the peer's %q", text.Clip(sender.GetAddress(), wire.MaxShown), from.address)
		}
	}
	return nil
}

// admission is the state of the check of one batch.
type admission struct {
	filter  *filter
	batch   *premote.MessageBatch
	from    *peer
	entries []*Entry // of the batch's targets; nil: not open to peers
	header  *premote.MessageHeader
	in      *admitted
	budget  int
	moved   map[string]int32 // indexes of the actors that were added to the targets
}

// envelope reports whether an envelope is permitted.
func (a *admission) envelope(e *premote.MessageEnvelope) (bool, error) {
	if err := a.indexes(e); err != nil {
		return false, err
	}
	kind := a.batch.GetTypeNames()[e.GetTypeId()]
	to := a.entries[e.GetTarget()]
	if to == nil {
		a.drop("there is no actor %q for peers at %q", a.batch.GetTargets()[e.GetTarget()].GetId(), a.batch.GetTargets()[e.GetTarget()].GetAddress())
		return false, nil
	}
	switch kind {
	case watchType, unwatchType, terminatedType:
		return a.system(kind, to, e)
	}
	id, known := to.Takes[kind]
	if !known {
		a.drop("%q takes no %q", a.batch.GetTargets()[e.GetTarget()].GetId(), kind)
		return false, nil
	}
	if err := a.body(kind, e); err != nil {
		return false, err
	}
	if id != a.batch.GetTargets()[e.GetTarget()].GetId() {
		a.reroute(e, id)
	}
	e.MessageHeader = a.header
	e.TargetRequestId = 0
	return true, nil
}

func (a *admission) indexes(e *premote.MessageEnvelope) error {
	within := func(index int32, n int) bool { return index >= 0 && int(index) < n }
	switch {
	case e == nil:
		return hostile("a nil envelope")
	case !within(e.GetTypeId(), len(a.batch.GetTypeNames())):
		return hostile("an envelope of type %d of %d", e.GetTypeId(), len(a.batch.GetTypeNames()))
	case !within(e.GetTarget(), len(a.batch.GetTargets())):
		return hostile("an envelope to target %d of %d", e.GetTarget(), len(a.batch.GetTargets()))
	case e.GetSender() != 0 && !within(e.GetSender()-1, len(a.batch.GetSenders())):
		return hostile("an envelope from sender %d of %d", e.GetSender(), len(a.batch.GetSenders()))
	case e.GetSerializerId() != premote.DefaultSerializerID:
		return hostile("an envelope for serializer %d", e.GetSerializerId())
	}
	return nil
}

// body checks that the type exists and that the decoded message is not much larger
// than its bytes.
func (a *admission) body(kind string, e *premote.MessageEnvelope) error {
	known, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(kind))
	if err != nil {
		return hostile("type %q: %v", text.Clip(kind, wire.MaxShown), err)
	}
	if err := wire.CountParts(e.GetMessageData(), known.Descriptor(), &a.budget); err != nil {
		return hostile("a %q: %v", kind, err)
	}
	return nil
}

// reroute changes the target of an envelope to another local actor.
func (a *admission) reroute(e *premote.MessageEnvelope, id string) {
	at, ok := a.moved[id]
	if !ok {
		address := a.batch.GetTargets()[e.GetTarget()].GetAddress()
		at = int32(len(a.batch.GetTargets())) //nolint:gosec // bounded by MaxParts
		a.batch.Targets = append(a.batch.Targets, actor.NewPID(address, id))
		a.entries = append(a.entries, nil) // no envelope of the peer names it
		if a.moved == nil {
			a.moved = map[string]int32{}
		}
		a.moved[id] = at
	}
	e.Target = at
}

// system checks a Watch, Unwatch or Terminated. A peer may watch permitted actors,
// and report the end of its own actors.
func (a *admission) system(kind string, to *Entry, e *premote.MessageEnvelope) (bool, error) {
	target := a.batch.GetTargets()[e.GetTarget()].GetId()
	if kind == terminatedType {
		var m actor.Terminated
		if err := proto.Unmarshal(e.GetMessageData(), &m); err != nil || !to.Terminated || m.GetWho().GetAddress() != a.from.address {
			return false, hostile("the end of an actor that is not the peer's")
		}
		return true, nil
	}
	var watcher *actor.PID
	var err error
	if kind == watchType {
		var m actor.Watch
		err, watcher = proto.Unmarshal(e.GetMessageData(), &m), m.GetWatcher()
	} else {
		var m actor.Unwatch
		err, watcher = proto.Unmarshal(e.GetMessageData(), &m), m.GetWatcher()
	}
	switch {
	case err != nil || watcher == nil || watcher.GetId() == "" || len(watcher.GetId()) > maxID || watcher.GetAddress() != a.from.address:
		return false, hostile("a watcher that is not the peer's")
	case !to.Watch:
		a.drop("%q is not to be watched", target)
		return false, nil
	case !a.from.watches(target, watcher.GetId(), kind == watchType):
		a.drop("it watches too much")
		return false, nil
	}
	return true, nil
}

func (a *admission) drop(format string, args ...any) {
	if a.in.dropped == "" {
		for i := range args {
			if s, ok := args[i].(string); ok {
				args[i] = text.Clip(s, wire.MaxShown)
			}
		}
		a.in.dropped = fmt.Sprintf(format, args...)
	}
}
