package server

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell/actors/gates"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/httpapi"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

const (
	minTTL, maxTTL = time.Second, 24 * time.Hour
	defaultTTL     = time.Minute
)

func protoUint(n uint64) protoreflect.Value { return protoreflect.ValueOfUint64(n) }

// turnToken identifies a turn: its place, which is random, and its fencing token.
type turnToken struct{ place, fence uint64 }

func (t turnToken) String() string {
	data := binary.BigEndian.AppendUint64(nil, t.place)
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(data, t.fence))
}

func parseTurnToken(text string) (turnToken, error) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(data) != 16 {
		return turnToken{}, invalid("token: it is not a token of a turn")
	}
	return turnToken{binary.BigEndian.Uint64(data), binary.BigEndian.Uint64(data[8:])}, nil
}

// acquire waits for a turn. It outlives the request, as a turn with a ttl outlives the
// link of its owner, who extends it by its token.
func (c *httpCall) acquire(ctx context.Context, m *httpapi.AcquireRequest) (proto.Message, error) {
	ttl, err := bounded("ttl", m.GetTtl(), defaultTTL, minTTL, maxTTL)
	if err != nil {
		return nil, err
	}
	wait, err := bounded("wait", m.GetWait(), defaultWait, 0, maxWait)
	if err != nil {
		return nil, err
	}
	var place [8]byte
	_, _ = rand.Read(place[:]) // it never fails
	request := &messages.AcquireTurnRequest{
		Gate: m.GetGate(), Place: binary.BigEndian.Uint64(place[:]), Request: 1,
		Ttl: durationpb.New(ttl), Try: wait == 0,
	}
	if wait > 0 {
		request.Timeout = durationpb.New(wait)
	}
	in, done, err := c.wait(request)
	if err != nil {
		return nil, err
	}
	defer done() // which gives back a turn, or a place in the queue
	answer, err := in.ask(ctx, c.gates, request, wait+wire.AnswerWithin)
	if err != nil {
		return nil, err
	}
	turn, ok := answer.(*messages.Turn)
	if !ok || ctx.Err() != nil {
		return nil, refusedTurn(answer)
	}
	// For how long the turn is valid if this node dies is up to its lease in Redis.
	answer, err = in.ask(ctx, c.gates, &messages.ExtendTurnRequest{Gate: m.GetGate(), Fence: turn.GetFence(), Place: turn.GetPlace()}, wire.AnswerWithin)
	if err != nil {
		return nil, err
	}
	extended, _ := answer.(*messages.ExtendTurnResponse)
	if extended.GetGood() == nil {
		return nil, errTurnLost
	}
	in.end(actor.TerminatedReason_AddressTerminated) // which keeps the turn
	return &httpapi.AcquireResponse{
		Token: turnToken{turn.GetPlace(), turn.GetFence()}.String(), Fence: turn.GetFence(), Ttl: extended.GetGood(), Waited: turn.GetWaited(),
	}, nil
}

// refusedTurn returns the error for an answer that is no turn.
func refusedTurn(answer any) error {
	m, ok := answer.(*messages.TurnRefused)
	if !ok {
		return wire.StatusOf(messages.Failure(messages.Code_CODE_UNAVAILABLE, "the gate does not answer"))
	}
	code := m.GetCode()
	if code == messages.Code_CODE_DEADLINE { // the turn was not free within the wait
		code = messages.Code_CODE_GATE_HELD
	}
	return wire.StatusOf(messages.Failure(code, m.GetReason()))
}

// ask sends a message and returns the first answer.
func (i *inbox) ask(ctx context.Context, to *actor.PID, message any, within time.Duration) (any, error) {
	if err := i.send(to, message); err != nil {
		return nil, err
	}
	late := time.NewTimer(within)
	defer late.Stop()
	answer, ok := i.receive(ctx, late.C)
	if !ok {
		return nil, wire.StatusOf(messages.Failure(messages.Code_CODE_UNAVAILABLE, "the gate does not answer, or the request has ended"))
	}
	return answer, nil
}

var errTurnLost = wire.StatusOf(messages.Failure(messages.Code_CODE_TURN_LOST, "the turn has ended, or is another node's"))

func (c *httpCall) extendTurn(ctx context.Context, m *httpapi.ExtendTurnRequest) (proto.Message, error) {
	t, err := parseTurnToken(m.GetToken())
	if err != nil {
		return nil, err
	}
	request := &messages.ExtendTurnRequest{Gate: m.GetGate(), Fence: t.fence, Place: t.place}
	answer, err := c.byToken(ctx, request, gates.ByToken{Extend: request})
	if err != nil {
		return nil, err
	}
	extended, _ := answer.(*messages.ExtendTurnResponse)
	if extended.GetGood() == nil {
		return nil, errTurnLost
	}
	return &httpapi.ExtendTurnResponse{Ttl: extended.GetGood()}, nil
}

func (c *httpCall) releaseTurn(ctx context.Context, m *httpapi.ReleaseTurnRequest) (proto.Message, error) {
	t, err := parseTurnToken(m.GetToken())
	if err != nil {
		return nil, err
	}
	request := &messages.ReleaseTurnRequest{Gate: m.GetGate(), Fence: t.fence, Place: t.place}
	answer, err := c.byToken(ctx, request, gates.ByToken{Release: request})
	if err != nil {
		return nil, err
	}
	if released, ok := answer.(*messages.ReleaseTurnResponse); !ok || released.GetReason() != "" {
		return nil, errTurnLost
	}
	return &httpapi.ReleaseTurnResponse{}, nil
}

// byToken asks the actor for gates about a turn, whose owner stays.
func (c *httpCall) byToken(ctx context.Context, request proto.Message, message gates.ByToken) (any, error) {
	if err := c.permit(request); err != nil {
		return nil, err
	}
	in := c.newInbox(c.caller)
	defer in.end(actor.TerminatedReason_AddressTerminated)
	return in.ask(ctx, c.gates, message, wire.AnswerWithin)
}
