package remote_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
)

// The node extends no turn of a principal whose right was withdrawn, whether it has a ttl or
// not. A turn that it still has may be released.
func TestTurnsEndWithTheRight(t *testing.T) {
	t.Parallel()
	name := redistest.Name(t)
	cfg := withRights(t, "tests * *\nmallory * gate:"+name+"*")
	cfg.HTTPAddress = "127.0.0.1:0"
	n := keeper(t, cfg, wakebell.Config{Gates: gate.Config{LeaseTTL: 2 * time.Second}})
	turns := "/v1/gates/" + name + "/turns"
	do(t, n.request(t, "POST", turns, malloryToken, `{"ttl":"24h"}`)).ok(t)

	s := meetAs(t, n, malloryToken)
	address, got := listening(t)
	s.hello(address).welcomed()
	self := actor.NewPID(address, "clerk")
	s.ask(self, &messages.AcquireTurnRequest{Gate: name + "actor", Place: 1})
	turn, _ := receive(t, got).(*messages.Turn)
	s.ask(self, &messages.AcquireTurnRequest{Gate: name, Place: 2, Ttl: durationpb.New(time.Hour)})
	s.ask(self, &messages.ExtendTurnRequest{Gate: name + "actor", Place: 1, Fence: turn.GetFence()})
	extended, _ := receive(t, got).(*messages.ExtendTurnResponse)
	require.NotNil(t, extended.GetGood(), "place 2 is taken before")

	require.NoError(t, n.server.SetRights(rightsOf(t, "tests * *")))
	refused, _ := receive(t, got).(*messages.TurnRefused)
	require.Equal(t, messages.Code_CODE_FORBIDDEN, refused.GetCode(), "it waits no longer")
	require.EqualValues(t, 2, refused.GetPlace())
	require.IsType(t, &messages.TurnLost{}, receive(t, got))
	for _, gate := range []string{name, name + "actor"} {
		turn, err := n.Gates().Acquire(t.Context(), gate)
		require.NoError(t, err)
		require.NoError(t, turn.Release(t.Context()))
	}
	s.ask(self, &messages.AcquireTurnRequest{Gate: name, Place: 3})
	fault, _ := receive(t, got).(*messages.Error)
	require.Equal(t, messages.Code_CODE_FORBIDDEN, fault.GetCode())
}

func TestTurnIsReleasedWithoutTheRight(t *testing.T) {
	t.Parallel()
	name := redistest.Name(t)
	n := serveHTTP(t, withRights(t, "tests * *\nmallory * gate:"+name))
	turns := "/v1/gates/" + name + "/turns"
	turn := do(t, n.request(t, "POST", turns, malloryToken, `{"ttl":"24h"}`)).ok(t)
	require.NoError(t, n.server.SetRights(rightsOf(t, "tests * *")))
	path := turns + "/" + turn["token"].(string)
	do(t, n.request(t, "POST", path+":extend", malloryToken, "")).problem(t, http.StatusForbidden, "forbidden")
	n.http(t, "POST", path+":release", "").problem(t, http.StatusConflict, "turn_lost") // it is not its own
	released, _ := talk(t, n, secret).ask(&messages.ReleaseTurnRequest{Gate: name}).(*messages.ReleaseTurnResponse)
	require.NotEmpty(t, released.GetReason())
	do(t, n.request(t, "POST", path+":release", malloryToken, "")).ok(t)
}

// A principal without a token has no right to anything either. Its connections are closed, but
// for those of a server that the program has itself, and a turn with a ttl outlasts its connection.
func TestTurnsAndRequestsEndWithTheToken(t *testing.T) {
	t.Parallel()
	name := redistest.Name(t)
	cfg := withMallory()
	cfg.HTTPAddress = "127.0.0.1:0"
	n := keeper(t, cfg, wakebell.Config{Gates: gate.Config{LeaseTTL: 2 * time.Second}})
	gates := []string{name, name + "kept"}
	do(t, n.request(t, "POST", "/v1/gates/"+gates[0]+"/turns", malloryToken, `{"ttl":"24h"}`)).ok(t)
	kept := n.http(t, "POST", "/v1/gates/"+gates[1]+"/turns", `{"ttl":"24h"}`).ok(t)["token"].(string)
	_, err := wakebell.NewTopic[string](name+"later").Schedule(t.Context(), n.Client(), "x", wakebell.ID("a"), wakebell.In(time.Hour))
	require.NoError(t, err)
	own := httptest.NewServer(n.server.HTTPHandler())
	t.Cleanup(own.Close)
	requests := [][3]string{
		{"POST", "/v1/gates/" + gates[0] + "/turns", `{"wait":"1m"}`},
		{"POST", "/v1/topics/" + name + "/leases:claim", `{"wait":"1m"}`},
		{"GET", "/v1/topics/" + name + "later/timers/a/report?wait=1m", ""},
	}
	ended := make(chan int, len(requests))
	for _, of := range requests {
		r := n.request(t, of[0], of[1], malloryToken, of[2])
		r.URL.Host = own.Listener.Addr().String()
		go func() {
			answer, err := own.Client().Do(r)
			if err != nil {
				ended <- 0
				return
			}
			_ = answer.Body.Close()
			ended <- answer.StatusCode
		}()
	}
	eventually(t, func() bool {
		info, err := n.Gates().Show(t.Context(), gates[0])
		return err == nil && info.Waiting > 0 && n.ResumeLocal(name) == nil // it has a subscription
	})
	require.NoError(t, n.server.SetTokens(map[string]string{secret: "tests"}, nil))
	for range requests {
		require.Contains(t, []int{http.StatusUnauthorized, http.StatusForbidden}, receive(t, ended))
	}
	turn, err := n.Gates().Acquire(t.Context(), gates[0])
	require.NoError(t, err)
	require.NoError(t, turn.Release(t.Context()))
	require.NotEmpty(t, n.http(t, "POST", "/v1/gates/"+gates[1]+"/turns/"+kept+":extend", "").ok(t)["ttl"])
}
