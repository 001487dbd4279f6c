package remote

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// ErrDenied is returned if the Server rejects the token or the certificate.
var ErrDenied = errors.New("the credentials are rejected")

var (
	errBroken = errors.New("the link broke")
	errClosed = errors.New("the client is closed")
)

// brokenError is errBroken for a request that was sent.
type brokenError struct{ sent time.Time }

func (e *brokenError) Error() string { return errBroken.Error() }
func (e *brokenError) Unwrap() error { return errBroken }

const (
	// maxFlight is how many requests of a client may wait for an answer.
	maxFlight = 512
	// maxFrame is how many commands a frame has at most.
	maxFrame = 500
	// maxFrameBytes bounds a frame of several commands: it has no more values than a node
	// accepts, because each takes two bytes.
	maxFrameBytes = 2 * wire.MaxParts
)

// clientLink keeps a session with the node open. It sends commands in frames and
// passes replies to the callers and subscribers that wait for them.
type clientLink struct {
	timers rpc.TimersClient
	cfg    DialConfig
	ctx    context.Context //nolint:containedctx // ends when the client is closed
	end    context.CancelFunc
	done   sync.WaitGroup
	room   chan struct{} // has an element for each request in flight

	mu          sync.Mutex
	up          bool
	change      chan struct{} // closed at each change of up
	down        time.Time     // when it went down
	lastErr     error         // why the last stream ended
	next        uint64
	waiting     map[uint64]chan messages.Answer // closed when the link breaks
	out         []*messages.Command
	wake        chan struct{}
	subscribers map[subscriberKey]*subscriber
	closing     chan struct{}    // closed when the client is to be closed
	leaving     sync.WaitGroup   // subscribers
	turns       map[uint64]*turn // by place; nil: the client is closed
	places      chan struct{}    // has an element for each of turns
}

type subscriberKey struct{ topic, name string }

func newClientLink(timers rpc.TimersClient, cfg DialConfig) *clientLink {
	s := &clientLink{
		timers: timers, cfg: cfg, room: make(chan struct{}, maxFlight), change: make(chan struct{}), down: time.Now(),
		waiting: map[uint64]chan messages.Answer{}, wake: make(chan struct{}, 1), subscribers: map[subscriberKey]*subscriber{}, closing: make(chan struct{}),
		turns: map[uint64]*turn{}, places: make(chan struct{}, maxPlaces),
	}
	//nolint:forbidigo // Close cancels it
	s.ctx, s.end = context.WithCancel(context.Background())
	s.done.Go(s.run)
	return s
}

// Close ends the subscriptions, releases the turns, ends the session and waits for its
// goroutines.
func (s *clientLink) Close() {
	s.mu.Lock()
	if !s.closed() {
		close(s.closing)
	}
	s.mu.Unlock()
	s.releaseAll()
	s.leaving.Wait() // the end of the session would release all their leases
	s.end()
	s.done.Wait()
}

func (s *clientLink) closed() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

// join adds a subscriber, which leaves before the client is closed.
func (s *clientLink) join(t *subscriber) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch key := t.key(); {
	case s.closed():
		return errClosed
	case s.subscribers[key] != nil:
		return argument.Invalid("Name", "%q is already subscribed to %q", t.of.Name, t.of.Topic)
	default:
		s.subscribers[key] = t
		s.leaving.Add(1)
		return nil
	}
}

func (s *clientLink) leave(t *subscriber) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.subscribers, t.key())
	s.leaving.Done()
}

func (t *subscriber) key() subscriberKey { return subscriberKey{t.of.Topic, t.of.Name} }

// run opens a stream again and again until the client is closed.
func (s *clientLink) run() {
	pause := wire.RedialFirst
	for s.ctx.Err() == nil {
		began := time.Now()
		s.broke(s.cfg.errs.reason(s.stream()))
		if time.Since(began) > wire.RedialMax {
			pause = wire.RedialFirst
		}
		select {
		case <-s.ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, wire.RedialMax)
	}
	s.broke(errClosed)
}

// stream opens a stream and reads it to its end. When the client is closed, it sends
// the end of the stream, so that the node does not wait for a new one.
func (s *clientLink) stream() error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.ctx))
	defer cancel()
	var opened atomic.Bool
	defer context.AfterFunc(s.ctx, func() {
		if !opened.Load() {
			cancel()
		}
		time.AfterFunc(wire.Grace, cancel)
	})()
	ctx = s.cfg.credentials(ctx)
	late := time.AfterFunc(wire.DialTimeout, cancel)
	stream, err := s.timers.Session(ctx)
	if err != nil {
		late.Stop()
		return err
	}
	// The first answer shows whether the credentials are accepted.
	hello := &messages.UnsubscribeRequest{Request: 0, Topic: "hello", Subscriber: "hello"}
	err = stream.Send(&messages.Commands{Commands: []*messages.Command{wire.CommandOf(hello)}})
	if err == nil || status.Code(err) == codes.Unknown {
		_, err = stream.Recv()
	}
	if !late.Stop() && err == nil {
		err = context.DeadlineExceeded
	}
	if err != nil {
		return err
	}
	opened.Store(true)
	s.opened()
	var writing sync.WaitGroup
	writing.Go(func() {
		if s.write(ctx, stream) != nil {
			cancel()
		}
	})
	for err == nil {
		var replies *messages.Replies
		if replies, err = stream.Recv(); err == nil {
			s.replies(replies)
		}
	}
	cancel()
	writing.Wait()
	return err
}

// opened marks the link as up and renews all subscriptions.
func (s *clientLink) opened() {
	s.mu.Lock()
	s.up, s.out = true, nil
	close(s.change)
	s.change = make(chan struct{})
	var all []*subscriber
	for _, t := range s.subscribers {
		all = append(all, t)
	}
	s.mu.Unlock()
	for _, t := range all {
		t.subscribe()
	}
}

// broke marks the link as down and fails all waiting requests.
func (s *clientLink) broke(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.up {
		s.down = time.Now()
		close(s.change)
		s.change = make(chan struct{})
	}
	s.up, s.lastErr, s.out = false, err, nil
	for number, answer := range s.waiting {
		delete(s.waiting, number)
		close(answer)
	}
}

// write sends queued commands until the stream or the client ends. It returns nil
// if it sent the end of the stream.
func (s *clientLink) write(ctx context.Context, stream rpc.Timers_SessionClient) error {
	for {
		closed := false
		select {
		case <-s.wake:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ctx.Done():
			closed = true
		}
		runtime.Gosched() // lets other goroutines add to the frame
		for frame := s.Take(); frame != nil; frame = s.Take() {
			if err := stream.Send(frame); err != nil {
				return err
			}
		}
		if closed {
			return stream.CloseSend()
		}
	}
}

// Take returns the next frame of queued commands, or nil if there are none. A frame that the
// node refuses would end the link, and its requests would be sent together again.
func (s *clientLink) Take() *messages.Commands {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, size := 0, 0
	for n < len(s.out) && n < maxFrame {
		size += proto.Size(s.out[n]) + wire.EnvelopeOverhead
		if n > 0 && size > min(maxFrameBytes, s.cfg.MaxMessage) {
			break
		}
		n++
	}
	if n == 0 {
		return nil
	}
	frame := &messages.Commands{Commands: s.out[:n:n]}
	if s.out = s.out[n:]; len(s.out) == 0 {
		s.out = nil
	}
	return frame
}

// replies passes replies to the requests, subscribers and turns that they are for.
func (s *clientLink) replies(frame *messages.Replies) {
	for _, r := range frame.GetReplies() {
		switch m := wire.Inside(r).(type) {
		case *messages.Leases:
			if t := s.subscriber(m.GetTopic(), m.GetSubscriber()); t != nil {
				t.leases(m)
			}
		case *messages.LeasesExtended:
			if t := s.subscriber(m.GetTopic(), m.GetSubscriber()); t != nil {
				t.extended(m)
			}
		case *messages.LeasesEnded:
			if t := s.subscriber(m.GetTopic(), m.GetSubscriber()); t != nil {
				t.ended(m)
			}
		case *messages.TurnLost:
			s.turnLost(m)
		case messages.Answer:
			s.mu.Lock()
			answer := s.waiting[m.GetRequest()]
			delete(s.waiting, m.GetRequest())
			s.mu.Unlock()
			if answer != nil {
				answer <- m
			}
		}
	}
}

// subscriber returns the subscriber of a topic or queue by name, or nil.
func (s *clientLink) subscriber(topic, name string) *subscriber {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.subscribers[subscriberKey{topic, name}]
}
