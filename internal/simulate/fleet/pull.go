package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
)

// pulled is a lease that a claim over HTTP has returned.
type pulled struct {
	Token     string    `json:"token"`
	ID        string    `json:"id"`
	Body      string    `json:"body"`
	Bytes     []byte    `json:"body_base64"` // of a body that is not JSON
	Delivered time.Time `json:"delivered"`
	Attempt   int       `json:"attempt"`
	TTL       string    `json:"ttl"`
}

// pull claims and handles leases over HTTP until the session ends: timers of parcels, which has no
// other consumers, and now and then one of what subscribers handle too. Between two claims it may
// pause for so long that the node closes the topic.
func (c *client) pull(s *session) {
	for i := 0; s.ctx.Err() == nil; i++ {
		name := fmt.Sprintf("%s claims %d", c.name(), i)
		topic, path := parcels, "/v1/topics/"+parcels
		switch c.fleet.plan.draw(name+" of", 6) {
		case 0:
			topic, path = orders, "/v1/topics/"+orders
		case 1:
			topic, path = mail, "/v1/queues/"+mail
		}
		n := c.fleet.nodes[c.fleet.plan.draw(name+" at", len(c.fleet.nodes))]
		wait := time.Duration(1+c.fleet.plan.draw(name+" for", 12)) * time.Second
		c.claim(s, s.at(n), topic, path+"/leases", 1+c.fleet.plan.draw(name+" most", 3), wait)
		select {
		case <-time.After(time.Duration(c.fleet.plan.draw(name+" pause", 7000)) * time.Millisecond):
		case <-s.ctx.Done():
		}
	}
}

// claim claims leases and handles them.
func (c *client) claim(s *session, at web, topic, path string, most int, wait time.Duration) {
	var got struct {
		Leases []pulled `json:"leases"`
	}
	ctx, cancel := context.WithTimeout(s.ctx, wait+gatewayTimeout)
	defer cancel()
	err := at.call(ctx, http.MethodPost, path+":claim", map[string]any{"max": most, "wait": wait.String()}, &got)
	if err != nil {
		c.fleet.trace("%s claims %s at %s: %v", c.name(), topic, at.node.name(), err)
		return
	}
	received := time.Now()
	for _, l := range got.Leases {
		if l.Bytes != nil {
			l.Body, err = letters.Read(&messages.Lease{Body: l.Bytes})
			c.fleet.check(err, "read a message")
		}
		s.subs.Go(func() { c.handlePulled(s, at, topic, path+"/"+l.Token, l, received) })
	}
}

// handlePulled handles a lease, which it extends after a third of its ttl, and settles it.
func (c *client) handlePulled(s *session, at web, topic, path string, l pulled, received time.Time) {
	f, subject := c.fleet, subjectOf(topic, l.ID)
	ttl, err := time.ParseDuration(l.TTL)
	f.check(err, "read the ttl of a lease")
	// It counts from the answer, and not longer than the lease can last by Redis's clock, because
	// the answer may be late.
	until := received.Add(ttl)
	if most := l.Delivered.Add(leaseTTL); most.Before(until) {
		until = most
	}
	if !time.Now().Before(until) {
		return // the answer was on its way for longer than the lease
	}
	ctx, cancel := context.WithCancelCause(s.ctx)
	defer cancel(nil)
	expiry := time.AfterFunc(time.Until(until), func() { cancel(wakebell.ErrLeaseLost) })
	defer expiry.Stop()
	r, stop := f.begin(ctx, subject, l.Body, l.Attempt, c.name()+" over HTTP")
	defer stop()
	f.promised(r, l, received, ttl)
	name := l.Body + "#" + strconv.Itoa(f.runsOf(l.Body)) // a snooze is not an attempt
	for takes := f.plan.takes(name); takes > 0 && ctx.Err() == nil; takes -= leaseTTL / 3 {
		select {
		case <-time.After(min(takes, leaseTTL/3)):
		case <-ctx.Done():
			continue
		}
		if takes > leaseTTL/3 {
			if until, err := c.extend(ctx, at, path); err == nil {
				expiry.Reset(time.Until(until))
			}
		}
	}
	how, verdict, body := f.plan.verdict(name, f.runsOf(l.Body))
	if ctx.Err() != nil {
		how, verdict = ends, ""
	}
	f.finish(ctx, r, how)
	if wait := f.lateBy(name, how, received.Add(ttl)); wait > 0 {
		select {
		case <-time.After(wait):
		case <-s.ctx.Done():
			return
		}
	}
	if verdict != "" {
		c.settle(s, at, path+verdict, body, r)
	}
}

// extend extends a lease, and returns until when it lasts. The answer counts from the request.
func (c *client) extend(ctx context.Context, at web, path string) (until time.Time, err error) {
	sent := time.Now()
	var got struct {
		TTL string `json:"ttl"`
	}
	if err = at.call(ctx, http.MethodPost, path+":extend", nil, &got); err != nil {
		c.fleet.trace("%s extends a lease at %s: %v", c.name(), at.node.name(), err)
		return until, err
	}
	ttl, err := time.ParseDuration(got.TTL)
	return sent.Add(ttl), err
}

// How a consumer over HTTP ends a lease.
const (
	forgets = "forgets its lease"
	late    = "acks after its lease"
	last    = "acks in the instant at which its lease ends"
	sends   = "sends "
)

// lateBy returns how long a consumer over HTTP waits with its verdict. promised is until when the answer
// to its claim says that the lease lasts, which was a while before it arrived.
func (f *fleet) lateBy(name, how string, promised time.Time) time.Duration {
	switch how {
	case late:
		return leaseTTL + time.Duration(f.plan.draw(name+"late", 4000))*time.Millisecond
	case last: // so that it is at the node when the lease ends there
		return time.Until(promised.Add(-2 * usual))
	}
	return 0
}

// verdict returns how a consumer over HTTP ends a lease, with the end of the path and the body of
// the request; empty: it makes none.
func (p *Plan) verdict(name string, runs int) (how, path string, body map[string]any) {
	switch n := p.draw(name+"ends", 100); {
	case runs <= 5 && n < 15:
		return last, ":ack", nil
	case runs > 5 || n < 75:
		return sends + "an ack", ":ack", nil
	case n < 83:
		return sends + "a nack", ":nack", map[string]any{"reason": "as the plan says"}
	case n < 88:
		return sends + "a snooze", ":nack", map[string]any{"delay": "2s", "snooze": true}
	case n < 92:
		return sends + "a release", ":release", nil
	case n < 96:
		return forgets, "", nil
	default:
		return late, ":ack", nil
	}
}

// settle sends a verdict. One that is refused has no effect; of one without an answer nothing is
// known.
func (c *client) settle(s *session, at web, path string, body map[string]any, r *run) {
	ctx, cancel := context.WithTimeout(s.ctx, callTimeout)
	defer cancel()
	f := c.fleet
	f.record.mu.Lock()
	r.sent = time.Now()
	f.record.mu.Unlock()
	var sent any
	if body != nil {
		sent = body
	}
	err := at.call(ctx, http.MethodPost, path, sent, &struct{}{})
	f.record.mu.Lock()
	defer f.record.mu.Unlock()
	if r.accepted = err == nil; strings.HasSuffix(path, ":ack") {
		r.acked, r.handled = err == nil, !errors.Is(err, wakebell.ErrLeaseLost)
	}
	f.record.line("%s settles %s %s: %v", r.at, r.subject, r.body, err)
}

// promised records until when a claim says that a lease lasts.
func (f *fleet) promised(r *run, l pulled, received time.Time, ttl time.Duration) {
	f.record.mu.Lock()
	defer f.record.mu.Unlock()
	r.received, r.promised, r.expires = received, received.Add(ttl), l.Delivered.Add(leaseTTL)
}

// runsOf returns how often a body has been delivered.
func (f *fleet) runsOf(body string) (n int) {
	f.record.mu.Lock()
	defer f.record.mu.Unlock()
	for _, r := range f.record.runs {
		if r.body == body {
			n++
		}
	}
	return n
}
