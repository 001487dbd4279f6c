package faults

import (
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/faultproxy"
)

// lostReplies is the share of a beat's scripts whose reply is lost.
const lostReplies = 0.1

// prefixes kills the beats of two prefixes on one Redis, while the reply to one script
// in ten is lost. Their schedules have the same names and similar instants. Each run
// must be in the topic of its own prefix, once.
func prefixes(w *world) {
	w.redis()
	load := beatLoad{schedules: 50, unit: 200 * time.Millisecond, pause: 600 * time.Millisecond}
	var fleets []*beatFleet
	for _, prefix := range []string{"billing-", "mail-"} {
		f := newBeatFleet(w, w.recur(load, prefix))
		f.prefix, f.addr = prefix, w.replies(lostReplies)
		f.start()
		fleets = append(fleets, f)
	}
	w.eventually("both beats fire", func() bool { return fleets[0].fires() && fleets[1].fires() })
	for began := time.Now(); time.Since(began) < shortBeats; {
		w.pause(between(w.rng, load.pause, 2*load.pause))
		fleets[w.rng.IntN(len(fleets))].kill(0)
		w.tried()
	}
	end := time.Now()
	w.found = &Judgement{}
	for _, f := range fleets {
		w.eventually("every schedule of "+f.prefix+" continues", func() bool { return f.account.past(end) })
		f.end()
	}
	for _, f := range fleets {
		w.readRuns(f.account, f.prefix)
		w.found.add(f.account.judge())
	}
	require.Zero(w, w.rdb.Exists(w.Context(), "timers_timeline:"+topic).Val(), "the topic without a prefix has runs")
}

// replies returns the address of a proxy that drops the replies to a share of the
// scripts.
func (w *world) replies(share float64) string {
	w.Helper()
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(w.rng.Uint64(), w.rng.Uint64()))
	p := faultproxy.Start(w.T, w.server.Addr)
	p.SetRule(func(command []string) faultproxy.Fate {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasPrefix(strings.ToLower(command[0]), "eval") && rng.Float64() < share {
			return faultproxy.Lose()
		}
		return faultproxy.Fate{}
	})
	return p.Addr
}
