package poller

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/actors/observe"
)

func TestMessagesOfEarlierIncarnationAreDropped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := &poller{Shared: NewShared(Topic{Source: actortest.NewMemorySource(0)}, &host.Env{Logger: actortest.DiscardLogger, Random: rand.Float64}, nil, &observe.ClockWatch{}, false), incarnation: 2}
	p.queue = &runQueue{ctx: ctx}
	p.core = leasing.New(leasing.Config{})
	old := &lease{queue: &runQueue{}}
	for _, message := range []any{
		tick{1},
		exchanged{incarnation: 1},
		completed{1},
		handlerRestarted{1},
		workerNeeded{1},
		orphansRemoved{incarnation: 1},
		overrideRead{incarnation: 1},
		announced{incarnation: 1},
		reported{incarnation: 1},
		peeked{incarnation: 1},
		shareFree{1},
		settleNow{lease: old},
		extendNow{lease: old},
		"a stranger's",
	} {
		require.False(t, p.receive(message, nil, time.Now()), "%T", message)
	}
	require.True(t, p.receive(tick{2}, nil, time.Now()))
}
