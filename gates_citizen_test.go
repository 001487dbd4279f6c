package wakebell_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/wakebell/wakebell/actors/gates"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/testhook"
)

// citizenVariable, when set, makes this test binary a process that takes turns
// at a gate until its input ends: "address, address of the guard, gate, seed";
// see TestMain.
const citizenVariable = "WAKEBELL_TEST_CITIZEN"

const (
	citizenLease  = 600 * time.Millisecond
	citizenSignal = 200 * time.Millisecond
	resource      = "resource"
)

// citizen writes what happens to it, one line each, with instants in ns of the
// machine's clock:
//
//	ticket FENCE ASKED ANSWERED
//	got FENCE ASKED GOT UNTIL
//	holds FENCE UNTIL             it still has the turn, at least until then
//	wrote FENCE FROM TO           the guard accepted its token, twice if all is well
//	refused FENCE AT              the guard did not
//	releasing FENCE AT
//	released FENCE FROM TO
//	lost FENCE UNTIL
type citizen struct {
	gates *gate.Gates
	guard *gate.Gates
	gate  string

	mu  sync.Mutex
	out io.Writer
}

func (c *citizen) say(what string, fence uint64, at ...time.Time) {
	line := fmt.Sprintf("%s %d", what, fence)
	for _, t := range at {
		line += fmt.Sprintf(" %d", t.UnixNano())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = fmt.Fprintln(c.out, line) // nobody reads it: then the test is over
}

// bySentinel is before the address of a Sentinel, in place of a server's.
const bySentinel = "sentinel="

func dial(addr string) *redis.Client {
	if sentinel, ok := strings.CutPrefix(addr, bySentinel); ok {
		return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: redistest.MasterName, SentinelAddrs: []string{sentinel}})
	}
	return redis.NewClient(&redis.Options{Addr: addr})
}

func runCitizen(spec string) error {
	var addr, guardAddr string
	var seed uint64
	c := &citizen{out: os.Stdout}
	logging.Disable() // Redis is down now and then
	if _, err := fmt.Sscan(spec, &addr, &guardAddr, &c.gate, &seed); err != nil {
		return err
	}
	rdb, guardRDB := dial(addr), dial(guardAddr)
	defer func() { _, _ = rdb.Close(), guardRDB.Close() }() // the process ends
	cfg := gate.Config{LeaseTTL: citizenLease, SignalTTL: citizenSignal, PresenceTTL: 800 * time.Millisecond, Logger: quiet}
	var err error
	observed := cfg
	testhook.Observe(&observed, func(t gates.TicketTaken) { c.say("ticket", uint64(t.Ticket), t.Asked, t.Answered) })
	c.gates, err = gate.New(rdb, observed)
	if err != nil {
		return err
	}
	cfg.GuardsElsewhere = addr != guardAddr
	if c.guard, err = gate.New(guardRDB, cfg); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // its end is all it says
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

// burst tries for some turns at once, which mostly are behind one another: the
// process passes them on itself.
func (c *citizen) burst(ctx context.Context, random *rand.Rand) {
	var all sync.WaitGroup
	for range 3 {
		own := rand.New(rand.NewPCG(random.Uint64(), 0)) // a history is repeatable
		all.Go(func() { c.turn(ctx, own) })
	}
	all.Wait()
}

// turn is one try for a turn, some of which give up.
func (c *citizen) turn(ctx context.Context, random *rand.Rand) {
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
	c.say("got", turn.Fence(), asked, time.Now(), turn.Until())
	c.write(ctx, turn)
	c.hold(turn, holding(random))
	if random.IntN(50) == 0 { // stays behind the gate until the turn is lost, or a while
		c.hold(turn, 2*citizenLease)
	}
	c.write(ctx, turn) // also if it is somebody else's turn by now
	until, from := turn.Until(), time.Now()
	if until.Before(from) { // it was lost before
		from = until
	}
	c.say("releasing", turn.Fence(), from)
	switch err := turn.Release(ctx); {
	case err == nil:
		c.say("released", turn.Fence(), from, time.Now())
	case errors.Is(err, gate.ErrTurnLost):
		c.say("lost", turn.Fence(), until)
	}
}

// hold keeps a turn for a while, unless it is lost.
func (c *citizen) hold(turn gate.Turn, d time.Duration) {
	for end := time.After(d); ; {
		select {
		case <-end:
			return
		case <-turn.Context().Done():
			return
		case <-time.After(citizenLease / 6):
			c.say("holds", turn.Fence(), turn.Until())
		}
	}
}

// holding is how long to hold: mostly not for long, up to a second at times.
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

// write uses the resource, as far as the guard lets it.
func (c *citizen) write(ctx context.Context, turn gate.Turn) {
	from := time.Now()
	switch err := c.guard.Guard(ctx, c.gate, resource, turn.Fence()); {
	case err == nil:
		c.say("wrote", turn.Fence(), from, time.Now())
	case errors.Is(err, gate.ErrFenceStale), errors.Is(err, gate.ErrFenceRegressed):
		c.say("refused", turn.Fence(), time.Now())
	}
}
