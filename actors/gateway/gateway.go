// Package gateway has the actor that carries out requests which arrive as messages:
// it orders requests about the same timer, bounds what each principal may have
// queued and running, and answers every request. It declares the interface Timers
// that it consumes. It makes no compatibility promise.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/actors/internal/principal"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/loglimit"
	"github.com/wakebell/wakebell/messages"
)

// Timers carries out the gateway's requests.
type Timers interface {
	// Do carries out a request and returns its answer, a *messages.Error if it
	// failed. messages.Principal of ctx is the sender's principal. The request
	// has been checked for its size only. Do is called by several goroutines at
	// once, and should return soon after ctx has ended.
	Do(ctx context.Context, request messages.Request) messages.Answer
}

// VisibleRecurring is a ListRecurringRequest of a sender that may know some schedules only.
type VisibleRecurring struct {
	*messages.ListRecurringRequest
	Sees func(name string) bool
}

// PID is the PID of the gateway of the runtime of this name.
func PID(system *actor.ActorSystem, name string) *actor.PID {
	return system.NewLocalPID(name + "/" + Name)
}

const (
	// Name is the name of the gateway below the supervisor.
	Name = "gateway"

	// DefaultTimeout is the timeout of a request without one.
	DefaultTimeout = 10 * time.Second
	// MaxTimeout is the longest timeout of a request.
	MaxTimeout = 10 * time.Minute

	// MaxRequestBytes bounds a request as a whole.
	MaxRequestBytes = 16 << 20
	// MaxBatch bounds the timers that a request is about.
	MaxBatch = 1000
)

var (
	errGatewayCrashed = errors.New("the gateway crashed")
	errGatewayCut     = errors.New("the drain of the gateway took too long")
)

// gateway is the actor that schedules by message. Its Receive never blocks:
// requests are carried out in goroutines that it owns. Every accepted request is
// answered, by its result or by the end of its context.
type gateway struct {
	timers      Timers
	env         *host.Env
	drainFlag   *atomic.Bool // set by a drain; outlives this incarnation
	incarnation uint64       // messages of earlier incarnations are dropped

	self, parent *actor.PID
	root         *actor.RootContext

	ctx        context.Context // of this incarnation; parent of the calls' contexts
	cancel     context.CancelCauseFunc
	failureLog loglimit.Limiter // for failures of requests without a sender

	calls    Calls
	begun    chan *Call // has room for MaxRunning
	workers  int
	draining bool // refuses new requests
	drained  bool // Drained was sent
}

type (
	// finished reports that the work of a call has ended.
	finished struct {
		incarnation uint64
		call        *Call
	}
	// Drain asks the gateway to refuse new requests. It is answered with Drained
	// when those it has are done.
	Drain struct{}
	// Cut asks the gateway to end the requests that still run.
	Cut struct{}
	// Drained answers Drain.
	Drained struct{}
)

// Props returns the props of a gateway; refuses is set once it refuses requests,
// in this incarnation and the next.
func Props(env *host.Env, timers Timers, refuses *atomic.Bool) *actor.Props {
	return env.Props(func(incarnation uint64) actor.Actor {
		return &gateway{timers: timers, env: env, drainFlag: refuses, incarnation: incarnation}
	})
}

// Receive ends what this incarnation owns as soon as it panics: its restart is
// delayed, and the callers are answered before.
func (g *gateway) Receive(c actor.Context) {
	sound := false
	defer func() {
		if !sound {
			g.stop(errGatewayCrashed)
		}
	}()
	switch m := c.Message().(type) {
	case *actor.Started:
		g.start(c)
	case *actor.Stopping:
		g.stop(poller.ErrStopped)
	case *actor.Restarting:
		g.stop(errGatewayCrashed)
	case finished:
		if m.incarnation == g.incarnation {
			g.calls.End(m.call)
		}
	case Drain:
		g.draining = true
	case Cut:
		g.stop(errGatewayCut)
	case messages.Request:
		g.take(requestContext(g.ctx, c), m, c.Sender(), principal.PartyOf(c))
	case *actor.Touch: // answered by protoactor
	default:
		if c.Sender() != nil { // not one of protoactor's own
			g.reply(nil, c.Sender(), Failure(messages.Code_CODE_INVALID, "message: the gateway does not accept a %T", m))
		}
	}
	g.pump()
	sound = true
}

// requestContext returns ctx with the sender's principal and rights.
func requestContext(ctx context.Context, c actor.Context) context.Context {
	header := c.MessageHeader()
	if header == nil || !slices.Contains(header.Keys(), messages.PrincipalHeader) {
		return ctx // of this process
	}
	ctx = messages.WithPrincipal(ctx, header.Get(messages.PrincipalHeader))
	ctx = messages.WithOrigin(ctx, messages.Origin{Host: header.Get(messages.HostHeader), Credential: header.Get(messages.CredentialHeader)})
	return messages.WithCelery(ctx, header.Get(messages.CeleryHeader))
}

func (g *gateway) start(c actor.Context) {
	g.self, g.parent, g.root = c.Self(), c.Parent(), c.ActorSystem().Root
	//nolint:forbidigo // the context lasts as long as the incarnation, which
	// stop ends
	g.ctx, g.cancel = context.WithCancelCause(context.Background())
	g.calls = NewCalls()
	g.begun = make(chan *Call, MaxRunning)
	g.draining = g.drainFlag.Load()
}

// stop ends the contexts of all calls, which answers them.
func (g *gateway) stop(cause error) {
	if g.cancel != nil {
		g.cancel(cause)
	}
}

// take admits a request, or answers why it is refused.
func (g *gateway) take(ctx context.Context, request messages.Request, sender *actor.PID, of principal.Party) {
	size, timeout, fault := Check(request)
	if g.draining {
		fault = Failure(messages.Code_CODE_DRAINING, "the system is being stopped")
	} else if fault == nil {
		if full := g.calls.Full(of, size); full != "" {
			fault = Failure(messages.Code_CODE_OVERLOADED, "%s", full)
		}
	}
	if fault != nil {
		g.reply(request, sender, fault)
		return
	}
	c := &Call{request: request, Sender: sender, Size: size, Of: of, Keys: keysOf(request)}
	c.Ctx, c.Cancel = context.WithTimeout(ctx, timeout)
	c.stopTimeout = context.AfterFunc(c.Ctx, func() { g.answer(c, Ended(context.Cause(c.Ctx))) })
	g.calls.Add(c)
}

// pump starts the calls that can start.
func (g *gateway) pump() {
	for c := g.calls.Begin(); c != nil; c = g.calls.Begin() {
		if c.Ctx.Err() != nil { // already answered
			g.calls.End(c)
			continue
		}
		if g.calls.Running() > MaxRunning {
			g.env.IO.Go(func() { g.carryOut(c) }) // begun may be full
			continue
		}
		g.begun <- c
		if g.workers < g.calls.Running() {
			g.workers++
			g.env.IO.Go(g.work)
		}
	}
	if g.draining && !g.drained && g.calls.idle() {
		g.drained = true
		g.root.Send(g.parent, Drained{})
	}
}

// work carries out one call after the other, in a goroutine of its own. A
// goroutine for each call would spend much of its time on growing its stack.
func (g *gateway) work() {
	for {
		select {
		case c := <-g.begun:
			g.carryOut(c)
		case <-g.ctx.Done():
			return
		}
	}
}

// carryOut does the work of a call and answers it, unless its context has ended
// first.
func (g *gateway) carryOut(c *Call) {
	answer, err := host.Recovered("carrying out a request", func() (messages.Answer, error) {
		defer g.logPanic(c)
		return g.timers.Do(c.Ctx, c.request), nil
	})
	if err != nil {
		answer = Failure(messages.Code_CODE_INTERNAL, "%v", err)
	}
	c.stopTimeout()
	g.answer(c, answer)
	c.Cancel()
	if g.ctx.Err() == nil { // otherwise no incarnation would read it
		g.root.Send(g.self, finished{g.incarnation, c})
	}
}

// logPanic logs the stack of a panic, and panics again.
func (g *gateway) logPanic(c *Call) {
	if reason := recover(); reason != nil {
		g.env.Logger.Error("gateway request panicked", "request", fmt.Sprintf("%T", c.request),
			"panic", fmt.Sprint(reason), "stack", string(debug.Stack()))
		panic(reason)
	}
}
