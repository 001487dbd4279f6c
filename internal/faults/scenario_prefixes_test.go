package faults

import (
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/faultproxy"
)

// lostReplies is the share of the scripts of a beat that lose their reply.
const lostReplies = 0.1

// prefixes kills the beats of two prefixes on one Redis in turn, while one script
// in ten loses its reply. Their schedules have the same names and instants close
// to each other; each run has to be in the topic of its own prefix, once.
func prefixes(w *world) {
	w.redis()
	load := beatLoad{schedules: 50, unit: 200 * time.Millisecond, pause: 600 * time.Millisecond}
	var flocks []*flock
	for _, prefix := range []string{"billing-", "mail-"} {
		f := newFlock(w, w.recur(load, prefix))
		f.prefix, f.addr = prefix, w.replies(lostReplies)
		f.start()
		flocks = append(flocks, f)
	}
	w.eventually("both beats fire", func() bool { return flocks[0].fires() && flocks[1].fires() })
	for began := time.Now(); time.Since(began) < shortBeats; {
		w.pause(between(w.rng, load.pause, 2*load.pause))
		flocks[w.rng.IntN(len(flocks))].kill(0)
		w.trials++
	}
	end := time.Now()
	w.found = &Judgement{}
	for _, f := range flocks {
		w.eventually("every schedule of "+f.prefix+" goes on", func() bool { return f.account.past(end) })
		f.end()
	}
	for _, f := range flocks {
		w.readRuns(f.account, f.prefix)
		w.found.add(f.account.judge())
	}
	require.Zero(w, w.rdb.Exists(w.Context(), "timers_timeline:"+topic).Val(), "the topic without a prefix has runs")
}

// replies is the address of a proxy before Redis that loses the replies of a share
// of the scripts.
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
