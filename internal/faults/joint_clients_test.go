package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	jointKeys   = 6 // whose order is judged
	jointRacers = 4
)

// clients starts the clients of a Redis: writers in the order of keys, others that change
// timers at about the time of their delivery, one that redrives, and an operator that
// changes limits, unless there are none. They end when the returned function is called.
func (j *jointRound) clients(rdb redis.UniversalClient, name string, limits Limits) (end func()) {
	j.Helper()
	ctx, stop := context.WithCancel(j.Context())
	var running sync.WaitGroup
	again := func(pause time.Duration, call func(ctx context.Context, n int)) {
		running.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				j.calm.RLock()
				call(context.WithoutCancel(ctx), n)
				j.calm.RUnlock()
				select {
				case <-time.After(pause):
				case <-ctx.Done():
				}
			}
		})
	}
	source := func() *rand.Rand { return rand.New(rand.NewPCG(j.rng.Uint64(), j.rng.Uint64())) }
	c := newClient(j.T, rdb)
	rng := source()
	again(150*time.Millisecond, func(_ context.Context, n int) { j.inOrder(c, rng, name, n) })
	for i := range jointRacers {
		r := &racer{
			t: j.T, deliveries: j.deliveries, client: newClient(j.T, rdb), rng: source(),
			name: fmt.Sprintf("client-%s-race%d", name, i), keyed: true,
		}
		again(10*time.Millisecond, func(ctx context.Context, n int) { r.race(ctx, fmt.Sprintf("%s/%d", r.name, n)) })
	}
	doomed := source()
	again(200*time.Millisecond, func(ctx context.Context, n int) { j.doom(ctx, c, doomed, name, n) })
	if limits.PerKey > 0 {
		operator := source()
		again(700*time.Millisecond, func(ctx context.Context, _ int) { j.operate(ctx, c, operator, limits) })
	}
	return sync.OnceFunc(func() {
		stop()
		running.Wait()
		for range 2 { // what was rejected meanwhile
			j.redrive(j.Context(), c, name)
		}
		if limits.PerKey > 0 {
			_, err := c.Resume(j.Context(), topic)
			require.NoError(j, err)
		}
	})
}

// inOrder schedules a timer of each key for an instant after those before, and in one case
// of ten for an earlier one.
func (j *jointRound) inOrder(c *wakebell.Client, rng *rand.Rand, name string, n int) {
	at := time.Now().Add(200 * time.Millisecond)
	if rng.IntN(10) == 0 {
		at = time.Now().Add(-time.Second)
	}
	plans := make([]plan, jointKeys)
	for k := range plans {
		work := keyedWork(rng)
		work.Reject = false
		plans[k] = plan{id: fmt.Sprintf("client-%s-k%d/%d", name, k, n), work: work}
	}
	j.putKeyed(c, plans, at)
}

// doom schedules a timer that is rejected, in the order of its key, and redrives all that
// were.
func (j *jointRound) doom(ctx context.Context, c *wakebell.Client, rng *rand.Rand, name string, n int) {
	id := fmt.Sprintf("client-%s-dead%d/%d", name, rng.IntN(2), n)
	j.putKeyed(c, []plan{{id: id, work: Work{Generation: 1, Reject: true}}}, time.Now())
	if n%5 == 4 {
		j.redrive(ctx, c, name)
	}
}

// redrive redrives each dead letter once.
func (j *jointRound) redrive(ctx context.Context, c *wakebell.Client, name string) {
	letters, err := c.LastDead(ctx, topic, 1000)
	require.NoError(j, err)
	for _, letter := range letters {
		if !strings.HasPrefix(letter.ID, "client-"+name+"-dead") || j.wasRedriven(letter.ID) {
			continue
		}
		call := Call{Kind: CallRedrive, Client: name, Generation: 1, Called: time.Now()}
		done, err := c.Redrive(ctx, topic, wakebelltype.RedriveOptions{Filter: wakebelltype.DeadFilter{Entry: letter.Entry}})
		if errors.Is(err, wakebell.ErrNotFound) || err == nil && done.Redriven == 0 { // it moves, or its timer is live
			continue
		}
		require.NoError(j, err)
		call.Returned = time.Now()
		j.deliveries.RecordCall(letter.ID, call)
	}
}

func (j *jointRound) wasRedriven(id string) bool {
	j.deliveries.mu.Lock()
	defer j.deliveries.mu.Unlock()
	calls := j.deliveries.timer(id).Calls
	return calls[len(calls)-1].Kind == CallRedrive
}

// redriven checks that each timer that was rejected has a dead letter.
func (j *jointRound) redriven() {
	j.Helper()
	j.deliveries.mu.Lock()
	defer j.deliveries.mu.Unlock()
	for id, t := range j.deliveries.timers {
		if strings.Contains(id, "-dead") && t.Dead == "" {
			j.Errorf("%s was rejected, and has no dead letter\n%s", id, t.History(nil))
		}
	}
}

// operate pauses a topic, resumes it, or changes its limits. Those that it sets are lower
// than those of the nodes.
func (j *jointRound) operate(ctx context.Context, c *wakebell.Client, rng *rand.Rand, limits Limits) {
	var err error
	switch rng.IntN(4) {
	case 0:
		if _, err = c.Pause(ctx, topic, "operator", ""); err == nil {
			<-time.After(between(rng, 50*time.Millisecond, 400*time.Millisecond))
			_, err = c.Resume(ctx, topic)
		}
	case 1:
		_, err = c.Retune(ctx, topic, wakebelltype.Settings{PerKey: 1, MaxInFlight: limits.MaxInFlight / 2})
	case 2:
		_, err = c.Retune(ctx, topic, wakebelltype.Settings{RateLimit: limits.RateLimit / 2, RatePer: limits.RatePer, RateBurst: limits.RateBurst / 2})
	default:
		_, err = c.Retune(ctx, topic, wakebelltype.Settings{})
	}
	require.NoError(j, err)
}

// command runs a command of wakebell, and kills it after a while.
func (j *jointRound) command(lasts time.Duration, args ...string) (done, killed bool, log string) {
	j.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(j.Context(), j.program, args...)
	cmd.Stderr, cmd.SysProcAttr = &stderr, redistest.ChildAttr()
	require.NoError(j, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return err == nil, false, stderr.String()
	case <-time.After(lasts):
		killed = cmd.Process.Kill() == nil
		return <-ended == nil, killed, stderr.String()
	}
}
