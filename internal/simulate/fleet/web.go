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
	"time"

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
