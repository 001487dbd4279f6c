package poller

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/actors/internal/host"
)

func TestMailOfAnEarlierLifeIsDropped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := &poller{Shared: NewShared(Topic{Source: actortest.NewShelf(0)}, &host.Env{Logger: actortest.Quiet, Random: rand.Float64}, nil, &ClockWatch{}, false), epoch: 2}
	p.run = &run{ctx: ctx}
	old := &lease{stream: &stream{over: t.Context()}}
	for _, message := range []any{
		tick{1},
		exchanged{epoch: 1},
		completed{1},
		handlerBack{1},
		healed{epoch: 1},
		endDrain{epoch: 1},
		settleNow{lease: old},
		extendNow{lease: old},
		"a stranger's",
	} {
		require.False(t, p.take(message, nil), "%T", message)
	}
	require.True(t, p.take(tick{2}, nil))
}
