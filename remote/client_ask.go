package remote

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// wait waits until the link is up, up to DeadLink after it went down. It returns at
// once if a retry cannot help: the credentials were rejected, or the error is
// permanent.
func (s *clientLink) wait(ctx context.Context) error {
	for {
		s.mu.Lock()
		up, change, why, left := s.up, s.change, s.lastErr, time.Until(s.down.Add(s.cfg.DeadLink))
		s.mu.Unlock()
		switch code := status.Code(why); {
		case s.ctx.Err() != nil:
			return errClosed
		case up:
			return nil
		case code == codes.Unauthenticated || code == codes.PermissionDenied:
			return s.cfg.denied(why)
		case refusesCertificate(why):
			return s.cfg.denied(why)
		case left <= 0, permanent(why):
			return s.cfg.unavailable(why)
		}
		select {
		case <-ctx.Done():
			if why == nil {
				return ctx.Err()
			}
			return &linkError{s.cfg.address, plain(why), ctx.Err(), why}
		case <-change:
		case <-time.After(min(left, wire.RedialFirst)):
		case <-s.ctx.Done():
		}
	}
}

// send adds a command to the next frame. It returns false if the link is down.
func (s *clientLink) send(m proto.Message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.up {
		return false
	}
	s.put(m)
	return true
}

// put adds a command to the next frame; mu is held.
func (s *clientLink) put(m proto.Message) {
	s.out = append(s.out, wire.CommandOf(m))
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// answerLimit is how long Ask waits for an answer if the context has no deadline:
// an answer may be lost although the link is up.
const answerLimit = requestTimeout + wire.AnswerWithin

var errUnanswered = fmt.Errorf("no answer within %v", answerLimit)

// Ask sends a question once and waits for its answer. Errors: errBroken, as a brokenError if it
// was sent, that of ctx, those of wait, wakebell.ErrInvalid for a question that fits into no
// frame or has a text that is not UTF-8, which would break the link, or errUnanswered if ctx
// has no deadline. An AcquireTurnRequest
// may wait for long, so it takes no place among the maxFlight requests, and its
// caller repeats it after errUnanswered.
func (s *clientLink) Ask(ctx context.Context, asked wire.Question) (messages.Answer, error) {
	if size := proto.Size(asked) + wire.EnvelopeOverhead; size > s.cfg.MaxMessage {
		return nil, argument.Invalid("request", "%d bytes, the limit is MaxMessage, %d", size, s.cfg.MaxMessage)
	}
	data, err := proto.Marshal(asked)
	switch {
	case err != nil: // a text is not UTF-8, which would end the link with all others
		return nil, argument.Invalid("request", "%v", err)
	case len(data) > maxFrameBytes && !wire.Countable(data, asked.ProtoReflect().Descriptor()):
		return nil, argument.Invalid("request", "more than %d values", wire.MaxParts-wire.FrameParts)
	}
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	_, bounded := ctx.Deadline()
	if _, long := asked.(*messages.AcquireTurnRequest); long {
		bounded = false
	} else {
		select {
		case s.room <- struct{}{}:
			defer func() { <-s.room }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	answer := make(chan messages.Answer, 1)
	s.mu.Lock()
	if !s.up {
		s.mu.Unlock()
		return nil, errBroken
	}
	s.next++
	n := s.next
	s.waiting[n] = answer
	number(ctx, asked, n)
	s.put(asked)
	s.mu.Unlock()
	sent := time.Now()
	var late <-chan time.Time
	if !bounded {
		late = time.After(answerLimit)
	}
	select {
	case a, ok := <-answer:
		if !ok {
			return nil, &brokenError{sent}
		}
		return a, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-late:
		err = s.cfg.unavailable(errUnanswered)
	}
	s.mu.Lock()
	delete(s.waiting, n)
	s.mu.Unlock()
	return nil, err
}
