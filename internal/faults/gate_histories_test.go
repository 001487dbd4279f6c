//go:build !race

package faults

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/faults/gatefaults"
	"github.com/wakebell/wakebell/internal/redistest"
)

var (
	historySeed   = flag.Uint64("gate-seed", 1, "seed of the histories of gates")
	historyRounds = flag.Int("gate-rounds", 1, "how many histories of each class to make")
)

func at(addr string) func(int) string { return func(int) string { return addr } }

// Eight processes take turns while they are killed, suspended for longer than their
// leases and give up, and while Redis crashes and restarts with all its data.
func TestGateHistories(t *testing.T) {
	t.Parallel()
	playHistories(t, func() (redistest.Masters, string) {
		server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
		return redistest.Masters{server}, server.Addr
	}, 4)
}

// The same on a Cluster whose masters crash and restart with all their data.
func TestGateHistoriesOnCluster(t *testing.T) {
	t.Parallel()
	playHistories(t, func() (redistest.Masters, string) {
		masters := redistest.Cluster(t, "--appendonly", "yes", "--appendfsync", "always")
		return masters, gatefaults.InCluster + masters[0].Addr
	}, 2)
}

// playHistories plays the rounds, each on new servers, and requires that no two turns
// overlap and that they are in order. One strike of so many crashes a server.
func playHistories(t *testing.T, start func() (servers redistest.Masters, address string), oneOf int) {
	t.Helper()
	turns := 0
	for round := range *historyRounds {
		seed := *historySeed + uint64(round)
		servers, address := start()
		w := &gatefaults.Run{T: t, Redis: at(address), Gate: fmt.Sprint("history", round)}
		h := w.Play(seed, func(random *rand.Rand) {
			if random.IntN(oneOf) == 0 {
				crashed := servers[random.IntN(len(servers))]
				crashed.Kill()
				<-time.After(time.Duration(random.IntN(1000)) * time.Millisecond)
				crashed.Restart(t)
				return
			}
			w.Usual(random)
		})
		require.Empty(t, append(h.Overlaps(), h.OutOfOrder()...), "seed %d\n%s", seed, w.Lines())
		require.Empty(t, h.StaleWrites(), "seed %d", seed)
		require.Empty(t, h.Stuck, "seed %d", seed)
		turns += h.Turns()
		_, stopped := h.Writes()
		t.Logf("seed %d: %d turns, %d tickets, %d writes refused", seed, h.Turns(), h.Tickets(), stopped)
		for _, server := range servers {
			server.Stop()
		}
	}
	t.Logf("%d histories from seed %d: %d turns, no overlap, no inversion, no fence that did not grow; 3/N = %.2g",
		*historyRounds, *historySeed, turns, 3/float64(max(turns, 1)))
}

// If Redis loses data, turns may overlap. The guard refuses stale writes, and no
// participant is stuck.
func TestGateHistoriesWithLossOfData(t *testing.T) {
	t.Parallel()
	guard := redistest.Start(t)
	turns, refused := 0, 0
	for round := range *historyRounds {
		seed := *historySeed + uint64(round)
		server := redistest.Start(t)
		rdb := server.Client(t)
		w := &gatefaults.Run{T: t, Redis: at(server.Addr), Guard: guard.Addr, Gate: fmt.Sprint("history", round)}
		h := w.Play(seed, func(random *rand.Rand) {
			switch random.IntN(4) {
			case 0:
				require.NoError(t, rdb.FlushAll(t.Context()).Err())
			case 1:
				server.Kill()
				server.Restart(t)
			default:
				w.Usual(random)
			}
		})
		require.Empty(t, h.StaleWrites(), "seed %d", seed)
		require.Empty(t, h.Stuck, "seed %d", seed)
		accepted, stopped := h.Writes()
		t.Logf("seed %d: %d turns, %d writes, %d refused", seed, h.Turns(), accepted, stopped)
		turns, refused = turns+h.Turns(), refused+stopped
		server.Stop()
	}
	t.Logf("%d histories from seed %d: %d turns, %d writes refused, none that was stale let through", *historyRounds, *historySeed, turns, refused)
}

// A replica that has missed the last writes of its master takes over, so a fence may
// be granted twice. The guard refuses stale writes, and no participant is stuck.
func TestGateHistoriesWithFailover(t *testing.T) {
	t.Parallel()
	guard := redistest.Start(t)
	turns, refused := 0, 0
	for round := range *historyRounds {
		seed := *historySeed + uint64(round)
		watched := redistest.Sentinel(t)
		replica := watched.Replica.Client(t)
		w := &gatefaults.Run{T: t, Redis: at(gatefaults.BySentinel + watched.Sentinel.Addr), Guard: guard.Addr, Gate: fmt.Sprint("failover", round)}
		step := 0
		h := w.Play(seed, func(random *rand.Rand) {
			if step++; step != 3 {
				w.Usual(random)
				return
			}
			require.NoError(t, replica.ClientKillByFilter(t.Context(), "TYPE", "master").Err()) // it connects again within a second
			<-time.After(time.Duration(random.IntN(900)) * time.Millisecond)
			watched.Master.Kill()
		})
		require.Empty(t, h.StaleWrites(), "seed %d", seed)
		require.Empty(t, h.Stuck, "seed %d", seed)
		require.Equal(t, "master", replica.Do(t.Context(), "ROLE").Val().([]any)[0])
		accepted, stopped := h.Writes()
		t.Logf("seed %d: %d turns, %d writes, %d refused", seed, h.Turns(), accepted, stopped)
		turns, refused = turns+h.Turns(), refused+stopped
		watched.Sentinel.Stop()
		watched.Replica.Stop()
	}
	t.Logf("%d failovers from seed %d: %d turns, %d writes refused, none that was stale let through", *historyRounds, *historySeed, turns, refused)
}
