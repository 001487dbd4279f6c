package gatefaults

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	actorgates "github.com/wakebell/wakebell/actors/gates"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/internal/redistest"
)

// Variable is the environment variable that makes a test binary a process that takes
// turns at a gate until its input ends: "address, address of the guard, gate, seed". Its
// TestMain calls [Main].
const Variable = "WAKEBELL_TEST_PARTICIPANT"

// Lease is the lease of a turn.
const Lease = 600 * time.Millisecond

const (
	participantSignal = 200 * time.Millisecond
	resource          = "resource"
)

// participant prints its events, one line each, with instants in ns of the machine's
// clock:
//
//	ticket FENCE ASKED ANSWERED
//	got FENCE ASKED GOT UNTIL
//	holds FENCE UNTIL             it still has the turn at least until then
//	wrote FENCE FROM TO           the guard accepted its token (twice per turn without faults)
//	refused FENCE AT              the guard refused its token
//	releasing FENCE AT
//	released FENCE FROM TO
//	lost FENCE UNTIL
type participant struct {
	gates *gate.Gates
	guard *gate.Gates
	gate  string

	mu  sync.Mutex
	out io.Writer
}

func (c *participant) print(what string, fence uint64, at ...time.Time) {
	line := fmt.Sprintf("%s %d", what, fence)
	for _, t := range at {
		line += fmt.Sprintf(" %d", t.UnixNano())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = fmt.Fprintln(c.out, line) // an error means that the test has ended
}

// BySentinel is the prefix of the address of a Sentinel, InCluster that of a server of a
// Cluster.
const (
	BySentinel = "sentinel="
	InCluster  = "cluster="
)

func dial(addr string) redis.UniversalClient {
	if member, ok := strings.CutPrefix(addr, InCluster); ok {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{member}})
	}
	if sentinel, ok := strings.CutPrefix(addr, BySentinel); ok {
		return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: redistest.MasterName, SentinelAddrs: []string{sentinel}})
	}
	return redis.NewClient(&redis.Options{Addr: addr})
}

// Main takes turns as the value of Variable says, if it is set, and then ends the
// process.
func Main() {
	spec := os.Getenv(Variable)
	if spec == "" {
		return
	}
	if err := participate(spec); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func gatesOn(rdb redis.UniversalClient, s opened.GateSwitches) (*gate.Gates, error) {
	conn, err := connection.Switched(rdb, connection.Config{Logger: slog.New(slog.DiscardHandler)}, opened.Switches{Gates: s})
	if err != nil {
		return nil, err
	}
	return gate.New(conn, gate.Config{LeaseTTL: Lease})
}

func participate(spec string) error {
	var addr, guardAddr string
	var seed uint64
	c := &participant{out: os.Stdout}
	logging.Disable() // Redis is down at times
	if _, err := fmt.Sscan(spec, &addr, &guardAddr, &c.gate, &seed); err != nil {
		return err
	}
	rdb, guardRDB := dial(addr), dial(guardAddr)
	defer func() { _, _ = rdb.Close(), guardRDB.Close() }() // the process ends
	terms := opened.GateSwitches{SignalTTL: participantSignal, PresenceTTL: 800 * time.Millisecond}
	observed, elsewhere := terms, terms
	observed.Observe = func(t actorgates.TicketTaken) { c.print("ticket", uint64(t.Ticket), t.Asked, t.Answered) }
	elsewhere.Elsewhere = addr != guardAddr
	var err error
	if c.gates, err = gatesOn(rdb, observed); err != nil {
		return err
	}
	if c.guard, err = gatesOn(guardRDB, elsewhere); err != nil {
		return err
	}
	//nolint:forbidigo // the root context of a process
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // it carries no data, only its end matters
	}()
	var workers sync.WaitGroup
	for worker := range uint64(2) {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(seed, worker)) // a history is repeatable
			for ctx.Err() == nil {
				if random.IntN(4) == 0 {
					c.burst(ctx, random)
				} else {
					c.turn(ctx, random)
				}
			}
		})
	}
	workers.Wait()
	return errors.Join(c.gates.Close(), c.guard.Close())
}

// burst tries to take several turns at once, which mostly follow one another, so that
// the process passes them on itself.
func (c *participant) burst(ctx context.Context, random *rand.Rand) {
	var all sync.WaitGroup
	for range 3 {
		own := rand.New(rand.NewPCG(random.Uint64(), 0)) // a history is repeatable
		all.Go(func() { c.turn(ctx, own) })
	}
	all.Wait()
}

// turn tries to take a turn. Some tries give up.
func (c *participant) turn(ctx context.Context, random *rand.Rand) {
	patient := ctx
	if random.IntN(5) == 0 {
		var cancel context.CancelFunc
		patient, cancel = context.WithTimeout(ctx, time.Duration(random.IntN(300))*time.Millisecond)
		defer cancel()
	}
	asked := time.Now()
	turn, err := c.gates.Acquire(patient, c.gate)
	if err != nil {
		select {
		case <-time.After(time.Duration(random.IntN(20)) * time.Millisecond):
		case <-ctx.Done():
		}
		return
	}
	c.print("got", turn.Fence(), asked, time.Now(), turn.Until())
	c.write(ctx, turn)
	c.hold(turn, holding(random))
	if random.IntN(50) == 0 { // ignores the turn's context, until the turn is lost or a while has passed
		c.hold(turn, 2*Lease)
	}
	c.write(ctx, turn) // even if another participant has the turn by now
	until, from := turn.Until(), time.Now()
	if until.Before(from) { // the turn was lost before
		from = until
	}
	c.print("releasing", turn.Fence(), from)
	switch err := turn.Release(ctx); {
	case err == nil:
		c.print("released", turn.Fence(), from, time.Now())
	case errors.Is(err, gate.ErrTurnLost):
		c.print("lost", turn.Fence(), until)
	}
}

// hold keeps a turn for a while, unless it is lost.
func (c *participant) hold(turn gate.Turn, d time.Duration) {
	for end := time.After(d); ; {
		select {
		case <-end:
			return
		case <-turn.Context().Done():
			return
		case <-time.After(Lease / 6):
			c.print("holds", turn.Fence(), turn.Until())
		}
	}
}

// holding returns how long to hold a turn: mostly briefly, at times up to a second.
func holding(random *rand.Rand) time.Duration {
	switch random.IntN(20) {
	case 0:
		return time.Duration(random.IntN(1000)) * time.Millisecond
	case 1, 2, 3:
		return time.Duration(random.IntN(50)) * time.Millisecond
	default:
		return time.Duration(random.IntN(2000)) * time.Microsecond
	}
}

// write writes to the resource if the guard permits it.
func (c *participant) write(ctx context.Context, turn gate.Turn) {
	from := time.Now()
	switch err := c.guard.Guard(ctx, c.gate, resource, turn.Fence()); {
	case err == nil:
		c.print("wrote", turn.Fence(), from, time.Now())
	case errors.Is(err, gate.ErrFenceStale), errors.Is(err, gate.ErrFenceRegressed):
		c.print("refused", turn.Fence(), time.Now())
	}
}
