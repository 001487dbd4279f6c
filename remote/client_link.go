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

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// ErrDenied is returned if the Server rejects the token or the certificate.
var ErrDenied = errors.New("the credentials are not taken")

var (
	errBroken = errors.New("the link broke")
	errClosed = errors.New("the client is closed")
)

const (
	// maxFlight bounds the requests of a client that are not answered.
	maxFlight = 512
	// maxFrame bounds the commands in a frame, maxFrameBytes their bodies.
	maxFrame      = 500
	maxFrameBytes = 1 << 20
)

// clientLink keeps a session open: what is asked of it goes in frames, and what
// comes back goes to who asked.
type clientLink struct {
	timers rpc.TimersClient
	cfg    DialConfig
	ctx    context.Context //nolint:containedctx // of the session's own life
	end    context.CancelFunc
	done   sync.WaitGroup
	room   chan struct{} // a place for each request that is not answered

	mu          sync.Mutex
	up          bool
	change      chan struct{} // closed at each change of up
	down        time.Time     // since when it is not up
	lastErr     error         // why the last stream ended
	next        uint64
	waiting     map[uint64]chan messages.Answer // closed when the link breaks
	out         []*messages.Command
	wake        chan struct{}
	subscribers map[subscriberKey]*subscriber
	turns       map[uint64]*turn // by their places; nil: the client is closed
	places      chan struct{}    // one for each of turns
}

type subscriberKey struct{ topic, name string }

func newClientLink(timers rpc.TimersClient, cfg DialConfig) *clientLink {
	s := &clientLink{
		timers: timers, cfg: cfg, room: make(chan struct{}, maxFlight), change: make(chan struct{}), down: time.Now(),
		waiting: map[uint64]chan messages.Answer{}, wake: make(chan struct{}, 1), subscribers: map[subscriberKey]*subscriber{},
		turns: map[uint64]*turn{}, places: make(chan struct{}, maxPlaces),
	}
	//nolint:forbidigo // its life is the client's: Close ends it
	s.ctx, s.end = context.WithCancel(context.Background())
	s.done.Go(s.run)
	return s
}

func (s *clientLink) Close() {
	s.releaseAll()
	s.end()
	s.done.Wait()
}

// run keeps a stream open until the client is closed.
func (s *clientLink) run() {
	pause := wire.RedialFirst
	for s.ctx.Err() == nil {
		began := time.Now()
		s.broke(s.cfg.trace.reason(s.stream()))
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

// stream is one stream from its begin to its end. When the client is closed it
// ends in order, so that the node knows that nobody comes back.
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
	// The first exchange tells whether we are let in.
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

// broke answers all that wait that the link broke.
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

// write sends what gathers. Without an error it has ended the stream in order.
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
		runtime.Gosched() // those who are about to ask as well fill the frame
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

func (s *clientLink) Take() *messages.Commands {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, size := 0, 0
	for n < len(s.out) && n < maxFrame && size < maxFrameBytes {
		size += proto.Size(s.out[n])
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

// replies gives what has come to who waits for it.
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

func (s *clientLink) subscriber(topic, name string) *subscriber {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.subscribers[subscriberKey{topic, name}]
}
