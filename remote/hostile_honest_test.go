package remote_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
)

// The honest client runs in a separate process too: neither the
// attackers' work nor their garbage delays what it measures.

// reply is the answer to one honest request.
type reply struct {
	Began time.Time
	Took  time.Duration
	Stall time.Duration // of it, for which the machine did not run the client
	Fault string        // the request was not answered
}

// late reports whether it came later than a bound, without the machine's stall.
func (r reply) late(bound time.Duration) bool { return r.Took-r.Stall > bound }

// beHonest schedules timers, requests the stats of their topic and handles them,
// until its stdin ends. It prints a reply for each request.
func beHonest(address, name string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	conn, err := connection.WithoutRedis(connection.Config{Logger: quiet})
	if err != nil {
		return err
	}
	c, err := remote.Dial(ctx, address, conn, remote.DialConfig{Config: remote.Config{Token: secret}, DeadLink: time.Minute})
	if err != nil {
		return err
	}
	defer c.Close()
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	watch := &stallWatch{last: time.Now()}
	work.Go(func() { watch.run(ctx) })
	handled := make(chan string, 16)
	work.Go(func() {
		err := c.Subscribe(ctx, remote.Subscription{Topic: name, Name: "honest", Credits: 16}, func(ctx context.Context, l *messages.Lease) error {
			select {
			case handled <- l.GetId():
			case <-ctx.Done():
			}
			return nil
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	})
	out, topic := json.NewEncoder(os.Stdout), wakebell.NewTopic[string](name)
	for i := 0; ctx.Err() == nil; i++ {
		for _, request := range []func(context.Context) error{
			func(ctx context.Context) error {
				_, err := topic.Schedule(ctx, c, "x", wakebell.ID(strconv.Itoa(i)))
				return err
			},
			func(ctx context.Context) error { _, err := c.Stats(ctx, name); return err },
		} {
			if err := out.Encode(watch.measure(ctx, request)); err != nil {
				return err
			}
		}
		select {
		case <-handled:
		case <-ctx.Done(): // the subscription ends too
		case <-time.After(hostileDelivery):
			return out.Encode(reply{Fault: fmt.Sprintf("timer %d was not delivered within %v", i, hostileDelivery)})
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return nil
}

// stallWatch measures for how long the machine does not run this process: how late
// a goroutine is that has nothing to do but to wake up.
type stallWatch struct {
	mu    sync.Mutex
	last  time.Time
	total time.Duration
}

const stallTick = 5 * time.Millisecond

func (w *stallWatch) run(ctx context.Context) {
	tick := time.NewTicker(stallTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.mu.Lock()
			w.total += w.gap()
			w.last = time.Now()
			w.mu.Unlock()
		}
	}
}

// gap returns how late the goroutine is, or 0 if it is less than a tick.
func (w *stallWatch) gap() time.Duration {
	if late := time.Since(w.last) - stallTick; late > stallTick {
		return late
	}
	return 0
}

// stalled returns the sum of all stalls.
func (w *stallWatch) stalled() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.total + w.gap()
}

func (w *stallWatch) measure(ctx context.Context, request func(context.Context) error) reply {
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), hostileAnswer)
	defer cancel()
	r, stalled := reply{Began: time.Now()}, w.stalled()
	if err := request(bound); err != nil {
		r.Fault = err.Error()
	}
	r.Took, r.Stall = time.Since(r.Began), w.stalled()-stalled
	return r
}

// honest is the honest client for the test.
type honest struct {
	*helper
	mu       sync.Mutex
	replies  []reply
	followed chan struct{} // closed when its process has said all
}

// stayHonest starts the honest client, and fails the test for each unanswered request.
func stayHonest(t *testing.T, n *node) *honest {
	t.Helper()
	h := &honest{helper: assist(t, "honest", n.address, n.topic.Name()+"-honest"), followed: make(chan struct{})}
	go func() {
		defer close(h.followed)
		for {
			var r reply
			if h.out.Decode(&r) != nil {
				return
			}
			if r.Fault != "" {
				t.Errorf("an honest request was not answered: %s", r.Fault)
			}
			h.mu.Lock()
			h.replies = append(h.replies, r)
			h.mu.Unlock()
		}
	}()
	return h
}

// during counts the replies to requests since an instant.
func (h *honest) during(from time.Time) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := len(h.replies) - 1; i >= 0 && h.replies[i].Began.After(from); i-- {
		n++
	}
	return n
}

// span is when an attack ran.
type span struct{ from, to time.Time }

// latencies are how long replies took; at is a quantile.
type latencies []time.Duration

func (l latencies) at(q float64) time.Duration {
	if len(l) == 0 {
		return 0
	}
	slices.Sort(l)
	return l[min(int(q*float64(len(l))), len(l)-1)].Round(100 * time.Microsecond)
}

// table returns how long the replies took during each attack, with the stalls of the
// machine and without.
func (h *honest) table(ran map[string][]span) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, spans []span) {
		var took, without latencies
		for _, r := range h.replies {
			if slices.ContainsFunc(spans, func(s span) bool { return !r.Began.Before(s.from) && r.Began.Before(s.to) }) {
				took, without = append(took, r.Took), append(without, r.Took-r.Stall)
			}
		}
		_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%v\t%v\t%v\t%v\t\n", name, len(spans), len(took), took.at(0.5), took.at(0.99), took.at(1), without.at(1))
	}
	_, _ = fmt.Fprintln(w, "honest answers beside\truns\tanswers\tp50\tp99\tmost\twithout stalls\t")
	for _, a := range attacks {
		row(a.name, ran[a.name])
	}
	row("all", []span{{to: time.Now()}})
	_ = w.Flush()
	return text.String()
}
