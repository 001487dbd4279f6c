package remote_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/queue"
)

// claim claims leases, and returns them.
func (n *node) claim(t testing.TB, path, body string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for _, l := range n.http(t, "POST", path+":claim", body).ok(t)["leases"].([]any) {
		all = append(all, l.(map[string]any))
	}
	return all
}

func (n *node) scheduleOverHTTP(t testing.TB, ids ...string) {
	t.Helper()
	for _, id := range ids {
		n.http(t, "POST", "/v1/topics/"+n.topic.Name()+"/timers", `{"id":"`+id+`","body":{"id":"`+id+`"}}`).ok(t)
	}
}

func TestLeasesOverHTTP(t *testing.T) {
	t.Parallel()
	n := serveHTTP(t, withMallory())
	leases := "/v1/topics/" + n.topic.Name() + "/leases"
	verdict := func(token, verb, body string) answer {
		return n.http(t, "POST", leases+"/"+token+":"+verb, body)
	}
	require.Empty(t, n.claim(t, leases, `{"wait":"1s"}`), "nothing is due")
	n.scheduleOverHTTP(t, "a")
	got := n.claim(t, leases, `{"wait":"1m"}`)
	require.Len(t, got, 1)
	require.Equal(t, "a", got[0]["id"])
	require.Equal(t, map[string]any{"id": "a"}, got[0]["body"])
	require.InDelta(t, 1, got[0]["attempt"], 0)
	token := got[0]["token"].(string)
	require.NotEmpty(t, verdict(token, "extend", "").ok(t)["ttl"])
	do(t, n.request(t, "POST", leases+"/"+token+":ack", malloryToken, "")).problem(t, http.StatusConflict, "lease_lost")
	require.Equal(t, http.StatusAccepted, verdict(token, "ack", "").status)
	verdict(token, "ack", "").problem(t, http.StatusConflict, "lease_lost")
	n.settled(t)

	n.scheduleOverHTTP(t, "b", "c", "d")
	tokens := map[string]string{}
	for len(tokens) < 3 {
		for _, l := range n.claim(t, leases, `{"max":3,"wait":"1m"}`) {
			tokens[l["id"].(string)] = l["token"].(string)
		}
	}
	verdict(tokens["b"], "nack", `{"reason":"later","delay":"0s"}`).ok(t)
	verdict(tokens["c"], "reject", `{"reason":"never"}`).ok(t)
	verdict(tokens["d"], "release", "").ok(t)
	attempts := map[string]any{}
	for len(attempts) < 2 {
		for _, l := range n.claim(t, leases, `{"max":2,"wait":"1m"}`) {
			attempts[l["id"].(string)] = jsonOf(t, l["attempt"]) + " " + jsonOf(t, l["failures"])
			verdict(l["token"].(string), "ack", "").ok(t)
		}
	}
	require.Equal(t, map[string]any{"b": "2 1", "d": "1 0"}, attempts)
	eventually(t, func() bool {
		st, err := n.Client().Stats(t.Context(), n.topic.Name())
		return err == nil && st.Total == 0 && st.Dead == 1
	})
}

// A snooze over HTTP delays a timer of a shard, and uses up no attempt.
func TestLeaseOverHTTPIsSnoozed(t *testing.T) {
	t.Parallel()
	n := serveHTTP(t, withToken())
	for _, err := range n.Client().Reshard(t.Context(), n.topic.Name(), 2) {
		require.NoError(t, err)
	}
	leases := "/v1/topics/" + n.topic.Name() + "/leases"
	n.scheduleOverHTTP(t, "a")
	got := n.claim(t, leases, `{"wait":"1m"}`)
	require.Len(t, got, 1)
	n.http(t, "POST", leases+"/"+got[0]["token"].(string)+":nack", `{"snooze":true,"delay":"1h"}`).ok(t)
	eventually(t, func() bool {
		info, _, err := n.Client().Get(t.Context(), n.topic.Name(), "a")
		return err == nil && info.Attempts == 0 && info.Failures == 0 && time.Until(info.Due) > 30*time.Minute
	})
}

func TestQueuesArePulledOverHTTP(t *testing.T) {
	t.Parallel()
	n := serveHTTP(t, withToken())
	name := redistest.Name(t)
	_, err := queue.New[string](name).Publish(t.Context(), n.Client().Queues(), "x")
	require.NoError(t, err)
	got := n.claim(t, "/v1/queues/"+name+"/leases", `{"wait":"1m"}`)
	require.Len(t, got, 1)
	n.http(t, "POST", "/v1/queues/"+name+"/leases/"+got[0]["token"].(string)+":ack", "").ok(t)
}

// A lease whose token is not used expires, and the token ends with it.
func TestLeaseOverHTTPExpires(t *testing.T) {
	t.Parallel()
	cfg := withToken()
	cfg.HandlerOptions = []wakebell.HandlerOption{wakebell.LeaseTTL(time.Second)}
	n := serveHTTP(t, cfg)
	leases := "/v1/topics/" + n.topic.Name() + "/leases"
	n.scheduleOverHTTP(t, "a")
	first := n.claim(t, leases, `{"wait":"1m"}`)
	require.Len(t, first, 1)
	second := n.claim(t, leases, `{"wait":"1m"}`)
	require.Len(t, second, 1)
	require.Equal(t, "2", jsonOf(t, second[0]["attempt"]))
	n.http(t, "POST", leases+"/"+first[0]["token"].(string)+":ack", "").problem(t, http.StatusConflict, "lease_lost")
	for n.http(t, "POST", leases+"/"+second[0]["token"].(string)+":ack", "").status >= http.StatusMultipleChoices {
		second = n.claim(t, leases, `{"wait":"1m"}`) // the lease had expired once more before its ack arrived
		require.Len(t, second, 1)
	}
}

// A caller that hangs up while it waits takes no lease and no turn with it.
func TestCallersThatHangUpHoldNothing(t *testing.T) {
	t.Parallel()
	n := serveHTTP(t, withToken())
	leases, turns := "/v1/topics/"+n.topic.Name()+"/leases", "/v1/gates/"+redistest.Name(t)+"/turns"
	turn := n.http(t, "POST", turns, `{"ttl":"1h"}`).ok(t)["token"].(string)
	ctx, hangUp := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for _, r := range []*http.Request{
		n.request(t, "POST", leases+":claim", secret, `{"max":10,"wait":"1m"}`),
		n.request(t, "POST", turns, secret, `{"ttl":"1h","wait":"1m"}`),
	} {
		go func() {
			got, err := http.DefaultClient.Do(r.WithContext(ctx))
			if err == nil {
				_ = got.Body.Close()
			}
			ended <- err
		}()
	}
	eventually(t, func() bool {
		info, err := n.System.Gates().Show(t.Context(), gateOf(turns))
		control, handled := n.Client().Overview(t.Context(), n.topic.Name())
		return err == nil && info.Waiting > 0 && handled == nil && len(control) == 1 && control[0].Nodes > 0
	})
	hangUp()
	for range 2 {
		require.ErrorIs(t, receive(t, ended), context.Canceled)
	}
	n.http(t, "POST", turns+"/"+turn+":release", "").ok(t)
	n.http(t, "POST", turns+"/"+n.http(t, "POST", turns, `{"wait":"1m"}`).ok(t)["token"].(string)+":release", "").ok(t)
	n.scheduleOverHTTP(t, "a")
	got := n.claim(t, leases, `{"wait":"1m"}`)
	require.Len(t, got, 1)
	n.http(t, "POST", leases+"/"+got[0]["token"].(string)+":ack", "").ok(t)
}

// A claim of a topic that the node handles itself is refused, and so are more waiting
// claims than one principal may have.
func TestClaimsAreRefused(t *testing.T) {
	t.Parallel()
	n := serveHTTP(t, withToken())
	own := wakebell.NewTopic[string](redistest.Name(t))
	require.NoError(t, n.Add(t.Context(), wakebell.Handle(own, func(context.Context, wakebell.Timer[string]) error { return nil })))
	n.http(t, "POST", "/v1/topics/"+own.Name()+"/leases:claim", `{"wait":"1m"}`).problem(t, http.StatusConflict, "conflict")

	const most = 64 // limits.Waits; one request has the turn, and one is too many
	turns := "/v1/gates/" + redistest.Name(t) + "/turns"
	ctx, end := context.WithCancel(t.Context())
	defer end()
	statuses := make(chan int, most+2)
	for range most + 2 {
		r := n.request(t, "POST", turns, secret, `{"wait":"1m"}`).WithContext(ctx)
		go func() {
			if got, err := http.DefaultClient.Do(r); err == nil {
				_ = got.Body.Close()
				statuses <- got.StatusCode
			}
		}()
	}
	for got := receive(t, statuses); got != http.StatusTooManyRequests; got = receive(t, statuses) {
		require.Equal(t, http.StatusOK, got)
	}
	n.scheduleOverHTTP(t, "other requests are carried out")
}

// gateOf is the gate of a path of turns.
func gateOf(path string) string { return strings.Split(path, "/")[3] }

// Timers of a key are claimed one after the other, also on a topic with shards.
func TestClaimsOverHTTPKeepOrderOfKeyOnShards(t *testing.T) {
	t.Parallel()
	cfg := withToken()
	cfg.HandlerOptions = []wakebell.HandlerOption{wakebell.PerKey(1)}
	n := serveHTTP(t, cfg)
	_, err := n.Client().Divide(t.Context(), n.topic.Name(), 4)
	require.NoError(t, err)
	path := "/v1/topics/" + n.topic.Name()
	for i, id := range []string{"first", "second", "third"} {
		n.http(t, "POST", path+"/timers", fmt.Sprintf(`{"id":%q,"timer_key":"customer","at":"2020-01-01T00:00:0%dZ"}`, id, i)).ok(t)
	}
	for _, id := range []string{"first", "second", "third"} {
		leases := n.claim(t, path+"/leases", `{"max":10,"wait":"1m"}`)
		require.Len(t, leases, 1)
		require.Equal(t, id, leases[0]["id"])
		n.http(t, "POST", path+"/leases/"+leases[0]["token"].(string)+":ack", "").ok(t)
	}
	n.settled(t)
}
