package actors_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/timers"
)

// fault is a network or server fault of one exchange or peek:
//
//	unsent            the request fails before it is sent
//	refused           the request fails with an error of this topic alone
//	reply_lost        the request is executed, but fails at the client
//	delayed D         the request is sent D later
//	reply_delayed D   the reply arrives D later
//	duplicated D      the request is sent again, D after its reply
type fault struct {
	kind  string
	after time.Duration
}

// wire is a source that records its exchanges as events and injects faults.
type wire struct {
	*timers.TimerSource
	world  *world
	node   *node
	faults []fault // one for each of the next exchanges
	late   bool    // the last reply was delayed
}

var errTopic = errors.New("this topic is broken")

func (x *wire) Exchange(ctx context.Context, r *exchange.Request) (*exchange.Reply, error) {
	f, down := x.take()
	what := x.world.of(x.node) + "exchange"
	switch {
	case down:
		return nil, fmt.Errorf("redis is down: %w", exchange.ErrUnavailable)
	case f.kind == "unsent":
		x.world.note("%s [%s] is not sent", what, request(r))
		return nil, fmt.Errorf("not sent: %w", exchange.ErrUnavailable)
	case f.kind == "refused":
		x.world.note("%s [%s] fails", what, request(r))
		return nil, errTopic
	case f.kind == "delayed":
		x.world.note("%s [%s] is delayed", what, request(r))
		<-time.After(f.after)
	}
	if x.late {
		x.late = false
		settled()
	}
	reply, err := x.TimerSource.Exchange(ctx, r)
	if err != nil {
		if ctx.Err() == nil {
			x.world.note("%s [%s] fails: %v", what, request(r), err)
		}
		return nil, err
	}
	if text := answer(r, reply); text != "" {
		x.world.note("%s: %s", what, text)
	}
	switch f.kind {
	case "reply_lost":
		x.world.note("%s: its reply is lost", what)
		return nil, fmt.Errorf("reply lost: %w", exchange.ErrUnavailable)
	case "reply_delayed":
		x.world.note("%s: its reply is delayed", what)
		x.late = true
		<-time.After(f.after)
	case "duplicated":
		late := *r
		time.AfterFunc(f.after, func() {
			_, err := x.TimerSource.Exchange(context.WithoutCancel(ctx), &late)
			x.world.note("%s [%s] is received again, late: %v", what, request(&late), err)
		})
	}
	return reply, nil
}

// settled returns when everything else that runs at this instant has waited for
// something: virtual time passes only then. Without it, a handler that begins with a late
// lease and the exchange that verifies this lease would be noted in either order.
func settled() { <-time.After(time.Nanosecond) }

func (x *wire) Peek(ctx context.Context) (exchange.PeekReply, error) {
	// Faults apply to a peek as to an exchange, and it counts as one.
	f, down := x.take()
	what := x.world.of(x.node) + "peek"
	switch {
	case down:
		return exchange.PeekReply{}, fmt.Errorf("redis is down: %w", exchange.ErrUnavailable)
	case f.kind == "unsent":
		x.world.note("%s is not sent", what)
		return exchange.PeekReply{}, fmt.Errorf("not sent: %w", exchange.ErrUnavailable)
	case f.kind == "refused":
		x.world.note("%s fails", what)
		return exchange.PeekReply{}, errTopic
	case f.kind == "delayed":
		x.world.note("%s is delayed", what)
		<-time.After(f.after)
	}
	answer, err := x.TimerSource.Peek(ctx)
	if f.kind == "reply_delayed" {
		x.world.note("%s: its reply is delayed", what)
		<-time.After(f.after)
	}
	return answer, err
}

// Watch peeks with faults.
func (x *wire) Watch(ctx context.Context, answered exchange.Answered) (stop func() (next time.Time)) {
	ctx, cancel := context.WithCancel(ctx)
	var mu sync.Mutex
	var at time.Time // of the next peek; zero: it is in flight
	again := func() bool {
		sent := time.Now()
		answer, err := x.Peek(ctx)
		next, ok := answered(sent, answer, err)
		mu.Lock()
		defer mu.Unlock()
		at = next
		return ok && ctx.Err() == nil
	}
	go func() {
		defer cancel()
		for again() {
			select {
			case <-time.After(time.Until(at)):
			case <-ctx.Done():
				return
			}
			mu.Lock()
			at = time.Time{}
			mu.Unlock()
		}
	}()
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		cancel()
		return at
	}
}

// take returns the fault of the next exchange, and counts the exchange.
func (x *wire) take() (f fault, down bool) {
	x.world.mu.Lock()
	defer x.world.mu.Unlock()
	x.world.sent[x.node.name+" "+x.Name()]++
	if x.world.down {
		return f, true
	}
	if len(x.faults) > 0 {
		f, x.faults = x.faults[0], x.faults[1:]
	}
	return f, false
}

var verdicts = map[exchange.Verdict]string{
	exchange.Ack: "ack", exchange.Nack: "nack", exchange.DeadLetter: "dead-letter", exchange.Release: "release",
}

// parts lists the settlements and extensions of a request, in its order.
func parts(r *exchange.Request) []string {
	var all []string
	for _, s := range r.Settle {
		text := verdicts[s.Verdict] + " " + s.ID
		if s.Verdict == exchange.Nack {
			text += " for " + s.Delay.String()
		}
		all = append(all, text)
	}
	for _, h := range r.Extend {
		all = append(all, "extend "+h.ID)
	}
	return all
}

func request(r *exchange.Request) string {
	all := parts(r)
	if r.Want > 0 {
		all = append(all, fmt.Sprintf("want %d", r.Want))
	}
	return strings.Join(all, ", ")
}

// answer describes the outcome of an exchange. It is empty if nothing was settled,
// extended or claimed.
func answer(r *exchange.Request, reply *exchange.Reply) string {
	all := parts(r)
	for _, refusal := range reply.Refused {
		all[refusal.Index] += " refused (" + refusal.Reason.String() + ")"
	}
	slices.Sort(all) // handlers that end together have no order
	for _, b := range reply.DeadLettered {
		if b.Index < 0 {
			all = append(all, "give up "+b.ID)
		}
	}
	for _, l := range reply.Leases {
		all = append(all, "claim "+l.ID)
	}
	return strings.Join(all, ", ")
}
