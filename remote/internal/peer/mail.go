package peer

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	premote "github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/remote/internal/wire"
)

const (
	// maxMail bounds the messages that wait for a link. limits.Mail bounds their bytes.
	// Messages beyond the bounds are dead letters.
	maxMail = 20_000
	// maxBatch bounds the messages in a frame.
	maxBatch = 1000
	// stockFrame bounds the bytes of a frame, unless one message alone is larger: a
	// stock gRPC server rejects 4 MiB and ends the stream, and the whole frame is lost.
	stockFrame = 4<<20 - 64<<10
)

// outgoing is a message to an actor at a peer.
type outgoing struct {
	target, sender *actor.PID
	body           any
	header         map[string]string
	watcher        *actor.PID // set for a Watch

	kind string
	data []byte
}

// encode marshals the message. It returns false if the message cannot be sent.
func (e *outgoing) encode(limit int) bool {
	m, ok := e.body.(proto.Message)
	if !ok {
		return false
	}
	data, err := proto.Marshal(m)
	if err != nil || len(data)+e.Names() > limit {
		return false
	}
	e.kind, e.data = string(proto.MessageName(m)), data
	return true
}

// encodeWithin is encode for a frame of MaxMessage bytes. It replaces a response that does not fit
// by an Error.
func (e *outgoing) encodeWithin(maxMessage int) bool {
	if e.encode(maxMessage - wire.FrameOverhead) {
		return true
	}
	m, ok := e.body.(proto.Message)
	if !ok || !wire.IsAnswer[wire.FullName(m)] {
		return false
	}
	e.body = TooLarge(m, maxMessage)
	return e.encode(maxMessage - wire.FrameOverhead)
}

// Names returns an upper bound of the bytes of the PIDs and the header.
func (e *outgoing) Names() int {
	n := len(e.kind) + len(e.target.GetId()) + len(e.target.GetAddress()) + len(e.sender.GetId()) + len(e.sender.GetAddress())
	for key, value := range e.header {
		n += len(key) + len(value) + wire.EnvelopeOverhead
	}
	return n + wire.EnvelopeOverhead
}

// undeliverable sends the message to the dead letters, which notify its sender.
func (e *outgoing) undeliverable(system *actor.ActorSystem) {
	switch e.body.(type) {
	case *actor.Watch, *actor.Unwatch, *actor.Stop:
		if e.watcher == nil {
			return
		}
		if ref, ok := system.ProcessRegistry.GetLocal(e.watcher.GetId()); ok {
			ref.SendSystemMessage(e.watcher, &actor.Terminated{Who: e.target, Why: actor.TerminatedReason_AddressTerminated})
		}
	default:
		system.DeadLetter.SendUserMessage(e.target, &actor.MessageEnvelope{Message: e.body, Sender: e.sender})
	}
}

type mailState int

const (
	queuedMail  mailState = iota
	firstMail             // the caller starts the link
	refusedMail           // too many messages wait, or the link has just failed
)

// enqueue adds a message to the queue of the link.
func (p *peer) enqueue(e *outgoing) mailState {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.gone, len(p.mail) >= maxMail:
		return refusedMail
	case !p.writing && time.Now().Before(p.notBefore):
		return refusedMail
	case p.mailBytes.Take(e.mailed()) != nil:
		return refusedMail
	}
	if e.watcher != nil {
		p.watchees = append(p.watchees, watching{e.watcher, e.target})
	}
	p.mail = append(p.mail, e)
	select {
	case p.wake <- struct{}{}:
	default:
	}
	if p.writing {
		return queuedMail
	}
	p.writing = true
	return firstMail
}

// watching is a local actor that watches an actor of a peer.
type watching struct{ watcher, watchee *actor.PID }

// unwatch removes a watcher of an actor of the peer.
func (p *peer) unwatch(watchee, watcher string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.watchees[:0]
	for _, w := range p.watchees {
		if w.watchee.GetId() != watchee || w.watcher.GetId() != watcher {
			kept = append(kept, w)
		}
	}
	clear(p.watchees[len(kept):])
	p.watchees = kept
}

// closeLink ends the link. It returns the unsent messages and the watchers to
// notify.
func (p *peer) closeLink() ([]*outgoing, []watching) {
	p.mu.Lock()
	defer p.mu.Unlock()
	left, watchers := p.mail, p.watchees
	p.mail, p.watchees = nil, nil
	p.mailBytes.Clear()
	p.writing, p.up, p.notBefore = false, false, time.Now().Add(RedialAfter)
	p.Clear()
	return left, watchers
}

// frame is a batch of messages to a peer.
type frame struct {
	batch   *premote.MessageBatch
	answers int // bytes of the responses in it
	leases  int // bytes of the messages to subscribers in it
}

func (f *frame) message() *premote.RemoteMessage {
	return &premote.RemoteMessage{MessageType: &premote.RemoteMessage_MessageBatch{MessageBatch: f.batch}}
}

// Take returns a frame of waiting messages, or nil if there are none.
func (p *peer) Take(limit int) *frame {
	p.mu.Lock()
	n, size, mailed := 0, wire.FrameOverhead, 0
	for n < len(p.mail) && n < maxBatch {
		next := len(p.mail[n].data) + p.mail[n].Names()
		if n > 0 && size+next > limit {
			break
		}
		mailed += p.mail[n].mailed()
		size, n = size+next, n+1
	}
	taken := p.mail[:n:n]
	p.mailBytes.Give(mailed)
	if p.mail = p.mail[n:]; len(p.mail) == 0 {
		p.mail = nil
	}
	p.mu.Unlock()
	if n == 0 {
		return nil
	}
	f := &frame{batch: &premote.MessageBatch{Envelopes: make([]*premote.MessageEnvelope, 0, n)}}
	kinds, targets, senders := map[string]int32{}, map[string]int32{}, map[string]int32{}
	for _, e := range taken {
		f.add(e, kinds, targets, senders)
	}
	clear(taken) // it shares its array with the messages that wait
	return f
}

// add adds a message to the frame. The maps hold the indexes of the batch's tables.
func (f *frame) add(e *outgoing, kinds, targets, senders map[string]int32) {
	b := f.batch
	kind, ok := kinds[e.kind]
	if !ok {
		kind = index(len(b.TypeNames))
		kinds[e.kind], b.TypeNames = kind, append(b.TypeNames, e.kind)
	}
	target, ok := targets[e.target.GetId()]
	if !ok {
		target = index(len(b.Targets))
		targets[e.target.GetId()], b.Targets = target, append(b.Targets, actor.NewPID(e.target.GetAddress(), e.target.GetId()))
	}
	envelope := &premote.MessageEnvelope{
		TypeId: kind, Target: target, MessageData: e.data,
		TargetRequestId: e.target.GetRequestId(), SenderRequestId: e.sender.GetRequestId(),
	}
	if e.sender != nil {
		key := e.sender.GetAddress() + "/" + e.sender.GetId()
		at, ok := senders[key]
		if !ok {
			b.Senders = append(b.Senders, actor.NewPID(e.sender.GetAddress(), e.sender.GetId()))
			at = index(len(b.Senders)) // 0 means no sender
			senders[key] = at
		}
		envelope.Sender = at
	}
	if e.header != nil {
		envelope.MessageHeader = &premote.MessageHeader{HeaderData: e.header}
	}
	b.Envelopes = append(b.Envelopes, envelope)
	switch {
	case wire.IsAnswer[e.kind]:
		f.answers += e.size()
	case wire.ForSubscriber[e.kind]:
		f.leases += e.size()
	}
}

// size estimates the memory of a waiting message, in bytes.
func (e *outgoing) size() int { return len(e.data) + AnswerOverhead }

// mailed returns the bytes that count against limits.Mail.
func (e *outgoing) mailed() int { return e.size() + e.Names() }

func index(n int) int32 { return int32(n) } //nolint:gosec // bounded by maxBatch
