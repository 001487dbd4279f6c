package relay

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/actortest"
)

// held is a Store whose rows are all behind rows that another relay holds, for some claims.
type held struct {
	memory
	claims int // that find nothing else
}

func (h *held) Claim(ctx context.Context) (Batch, error) {
	h.mu.Lock()
	contended := len(h.memory.claims) < h.claims
	h.mu.Unlock()
	if !contended {
		return h.memory.Claim(ctx)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.memory.claims = append(h.memory.claims, time.Now())
	return behindOthers{memoryBatch{m: &h.memory}}, nil
}

type behindOthers struct{ memoryBatch }

func (behindOthers) More() bool      { return true }
func (behindOthers) Contended() bool { return true }

// A relay whose rows are all behind those of another relay waits between its claims, unless rows
// are written.
func TestContendedRelayPausesBetweenClaims(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		system := actortest.QuietSystem()
		h := &held{memory: memory{waiting: map[string]bool{}}, claims: 5}
		began := time.Now()
		r, err := Start(system, Config{
			Name: "relay", Ready: h, Gateway: system.NewLocalPID("missing"),
			PollInterval: time.Minute, MeasureInterval: time.Minute, Timeout: 10 * time.Second, Logger: actortest.DiscardLogger,
		})
		require.NoError(t, err)
		synctest.Wait()
		r.Wake()
		<-time.After(time.Second)
		synctest.Wait()
		var at []time.Duration
		h.mu.Lock()
		for _, claim := range h.memory.claims {
			at = append(at, claim.Sub(began))
		}
		h.mu.Unlock()
		const ms = time.Millisecond
		require.Equal(t, []time.Duration{0, 0, 50 * ms, 100 * ms, 150 * ms, 200 * ms}, at)
		require.NoError(t, r.Stop(t.Context()))
	})
}
