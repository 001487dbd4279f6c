package remote_test

import (
	"flag"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/gateway"
)

var (
	hostileFor  = flag.Duration("hostile.for", 0, "how long TestHostile attacks; 0: some seconds")
	hostileSeed = flag.Uint64("hostile.seed", 1, "which attacks, and in which order")
)

// Bounds for the cost of all attacks together.
const (
	// hostileMemory bounds the growth of the node's memory.
	hostileMemory = 100 << 20
	// unseenGarbage allows for garbage that a busy machine collects late, in
	// the tests of the package.
	unseenGarbage = 50 << 20
	// hostileLines bounds the log lines of the node in half an hour or less.
	hostileLines     = 300
	hostileLinesTime = 30 * time.Minute
	// promptAnswer bounds the wait for each answer of the honest client, without the
	// stalls of the machine that it has measured itself.
	promptAnswer = time.Second
	// unseenStall allows for stalls of the node or of Redis, which it cannot measure: in
	// the tests of the package, which run beside others.
	unseenStall = 5 * time.Second
	// hostileAnswer is when a request counts as not answered.
	hostileAnswer = 20 * time.Second
	// hostileDelivery bounds the wait for a timer that is due.
	hostileDelivery = 20 * time.Second
)

// attack is one way to harm a node, which a hostile peer with a token has. It ends by
// itself and leaves nothing behind.
type attack struct {
	name string
	run  func(t *testing.T, n *node, random *rand.Rand)
}

func assertNoError(t *testing.T, err error, about string) bool {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", about, err)
	}
	return err == nil
}

// siege is a node under attack with an honest client.
type siege struct {
	node   *attackedNode
	honest *honest
	random *rand.Rand

	mu  sync.Mutex
	ran map[string][]span // by attack
}

// round makes each attack once, up to three at a time.
func (s *siege) round(t *testing.T) {
	order := s.random.Perm(len(attacks))
	for len(order) > 0 {
		together := order[:min(len(order), 1+s.random.IntN(3))]
		order = order[len(together):]
		t.Run("together", func(t *testing.T) {
			for _, i := range together {
				seed := s.random.Uint64()
				t.Run(attacks[i].name, func(t *testing.T) {
					t.Parallel()
					s.attack(t, attacks[i], rand.New(rand.NewPCG(*hostileSeed, seed))) //nolint:gosec // by seed
				})
			}
		})
	}
}

// besideEach is the least number of honest requests during each attack.
const besideEach = 2

// attack repeats an attack until besideEach honest requests were answered.
func (s *siege) attack(t *testing.T, a attack, random *rand.Rand) {
	began := time.Now()
	for tries := 0; !t.Failed() && time.Since(began) < patience && (tries == 0 || s.honest.during(began) < besideEach); tries++ {
		t.Run(strconv.Itoa(tries), func(t *testing.T) {
			defer endTurnedAway(t)
			a.run(t, s.node.node, random)
		})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ran[a.name] = append(s.ran[a.name], span{began, time.Now()})
}

func (s *siege) judgeAnswers(t *testing.T) {
	t.Helper()
	bound := promptAnswer
	if *hostileFor == 0 {
		bound += unseenStall
	}
	late := 0
	for _, r := range s.honest.replies {
		if r.late(bound) {
			late++
			t.Logf("%s: an honest answer after %v, of which the machine stalled for %v", r.Began.Format(time.TimeOnly), r.Took, r.Stall)
		}
	}
	require.Zero(t, late, "answers later than %v", bound)
}

// endTurnedAway ends an attack that the node has turned away.
func endTurnedAway(t *testing.T) {
	switch r := recover().(type) {
	case nil:
	case turnedAway:
		t.Logf("turned away: %v", r.err)
	default:
		panic(r)
	}
}

// goroutineSlack is for the workers of the gateway, which stay once they were needed,
// and for the connections to Redis and the like, which come and go with the load.
const goroutineSlack = gateway.MaxRunning + 40
