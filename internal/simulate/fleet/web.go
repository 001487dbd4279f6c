package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/messages"
)

// overHTTP makes calls with JSON, at the node of a session.
type overHTTP struct {
	client  *client
	session *session
}

func (p overHTTP) name() string { return p.client.name() + " over HTTP" }
func (p overHTTP) lives() bool  { return p.client.running() == p.session }

func (p overHTTP) schedule(ctx context.Context, t timer) (answer, error) {
	var got struct {
		Due     time.Time `json:"due"`
		Outcome string    `json:"outcome"`
	}
	body := map[string]any{"id": t.id, "in": t.in.String(), "body": t.body}
	err := p.session.at(p.session.node).call(ctx, http.MethodPost, "/v1/topics/"+t.topic+"/timers", body, &got)
	return answer{got.Due, got.Outcome == "replaced"}, err
}

func (p overHTTP) cancel(ctx context.Context, topic, id string) (answer, error) {
	var got struct {
		Found []string `json:"found"`
	}
	err := p.session.at(p.session.node).call(ctx, http.MethodDelete, "/v1/topics/"+topic+"/timers/"+id, nil, &got)
	return answer{pending: len(got.Found) == 1 && got.Found[0] == "pending"}, err
}

// web makes requests of HTTP to a node.
type web struct {
	client *http.Client
	node   *node
}

// at returns what makes requests to a node from the process of the session.
func (s *session) at(n *node) web { return web{s.web, n} }

// call sends a request and reads its answer.
func (w web) call(ctx context.Context, method, path string, body, into any) error {
	sent := []byte{}
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			return err
		}
	}
	to := url.URL{Scheme: "http", Host: w.node.web(), Path: path}
	r, err := http.NewRequestWithContext(ctx, method, to.String(), bytes.NewReader(sent))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	got, err := w.client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = got.Body.Close() }() // it was read
	if got.StatusCode < http.StatusMultipleChoices {
		return json.NewDecoder(got.Body).Decode(into)
	}
	var problem struct {
		Code   string `json:"code"`
		Detail string `json:"detail"`
	}
	if err := json.NewDecoder(got.Body).Decode(&problem); err != nil {
		return fmt.Errorf("%s: %w", got.Status, err)
	}
	code := messages.Code(messages.Code_value["CODE_"+strings.ToUpper(problem.Code)])
	return errors.Join(fmt.Errorf("%s: %s", problem.Code, problem.Detail), convert.ErrorOf(code))
}

// webClient returns a client of HTTP in a process with this host.
func (f *fleet) webClient(host netip.Addr) *http.Client {
	dial := f.net.of(host).Dial
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dial(ctx, network, address)
		},
	}}
}

// webGates takes turns over HTTP, as a program without a library does.
type webGates struct {
	fleet   *fleet
	session *session
	at      web
	ttl     time.Duration
}

// Acquire asks for a turn until it has it or the context ends.
func (g webGates) Acquire(ctx context.Context, name string) (gate.Turn, error) {
	for {
		t, err := g.ask(ctx, name, 8*time.Second)
		if err == nil || ctx.Err() != nil || !errors.Is(err, wakebell.ErrUnavailable) && !errors.Is(err, gate.ErrHeld) {
			return t, err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-g.session.ctx.Done():
			return nil, g.session.ctx.Err()
		}
	}
}

// TryAcquire asks for a turn once.
func (g webGates) TryAcquire(ctx context.Context, name string) (gate.Turn, error) {
	return g.ask(ctx, name, 0)
}

func (g webGates) With(context.Context, string, func(context.Context, uint64) error) error {
	return errors.ErrUnsupported // no operation uses it
}

func (g webGates) Guard(ctx context.Context, name, resource string, fence uint64) error {
	return g.at.call(ctx, http.MethodPost, "/v1/gates/"+name+":guard", map[string]any{"resource": resource, "fence": fence}, &struct{}{})
}

// ask makes one request for a turn. What the answer says counts from when the turn was granted,
// which was not before the request had been sent and had waited.
func (g webGates) ask(ctx context.Context, name string, wait time.Duration) (gate.Turn, error) {
	var got struct {
		Token  string `json:"token"`
		Fence  uint64 `json:"fence"`
		TTL    string `json:"ttl"`
		Waited string `json:"waited"`
	}
	ctx, cancel := context.WithTimeout(ctx, wait+gatewayTimeout)
	defer cancel()
	defer context.AfterFunc(g.session.ctx, cancel)()
	sent := time.Now()
	path := "/v1/gates/" + name + "/turns"
	if err := g.at.call(ctx, http.MethodPost, path, map[string]any{"ttl": g.ttl.String(), "wait": wait.String()}, &got); err != nil {
		return nil, err
	}
	waited, err := time.ParseDuration(got.Waited)
	g.fleet.check(err, "read for how long a turn was waited for")
	ttl, err := time.ParseDuration(got.TTL)
	g.fleet.check(err, "read the ttl of a turn")
	t := &webTurn{webGates: g, gate: name, path: path + "/" + got.Token, fence: got.Fence, waited: waited}
	t.ctx, t.end = context.WithCancelCause(g.session.ctx)
	t.timer = time.AfterFunc(0, func() {})
	t.lasts(sent.Add(waited + ttl))
	go t.keep(ttl)
	return t, nil
}

// webTurn is a turn that was taken over HTTP.
type webTurn struct {
	webGates
	gate, path string
	fence      uint64
	waited     time.Duration
	ctx        context.Context //nolint:containedctx // what Context returns
	end        context.CancelCauseFunc

	mu    sync.Mutex
	until time.Time
	timer *time.Timer // ends ctx at until
}

func (t *webTurn) Gate() string             { return t.gate }
func (t *webTurn) Fence() uint64            { return t.fence }
func (t *webTurn) Waited() time.Duration    { return t.waited }
func (t *webTurn) Context() context.Context { return t.ctx }

func (t *webTurn) Until() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.until
}

// lasts sets until when the turn lasts.
func (t *webTurn) lasts(until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer.Stop()
	t.until = until
	t.timer = time.AfterFunc(time.Until(until), func() { t.end(gate.ErrTurnLost) })
}

// keep extends the turn at a third of what its answer said, until it has ended.
func (t *webTurn) keep(ttl time.Duration) {
	for {
		select {
		case <-time.After(ttl / 3):
		case <-t.ctx.Done():
			return
		}
		ctx, cancel := context.WithTimeout(t.ctx, ttl/3)
		var got struct {
			TTL string `json:"ttl"`
		}
		sent := time.Now()
		err := t.at.call(ctx, http.MethodPost, t.path+":extend", nil, &got)
		cancel()
		switch {
		case errors.Is(err, gate.ErrTurnLost):
			t.end(err)
		case err != nil:
			t.fleet.trace("extend turn %d at %s: %v", t.fence, t.gate, err)
		default:
			good, err := time.ParseDuration(got.TTL)
			t.fleet.check(err, "read the ttl of a turn")
			t.lasts(sent.Add(good))
		}
	}
}

func (t *webTurn) Guard(ctx context.Context, resource string) error {
	return t.webGates.Guard(ctx, t.gate, resource, t.fence)
}

// Release gives the turn back.
func (t *webTurn) Release(ctx context.Context) error {
	t.end(context.Canceled)
	return t.at.call(ctx, http.MethodPost, t.path+":release", nil, &struct{}{})
}

func (t *webTurn) Do(context.Context, func(context.Context, uint64) error) error {
	return errors.ErrUnsupported // no operation uses it
}
