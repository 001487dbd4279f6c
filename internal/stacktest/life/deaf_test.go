package life_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/internal/testhook"
)

// A node whose subscription hears nothing is not ready, and says why, until it hears again.
func TestDeafSubscriptionIsProblemOfHealth(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	deaf := &elsewhere{}
	rdb.AddHook(deaf)
	topic := wakebell.NewTopic[string](redistest.Name(t))
	sys := stacktest.Build(t, rdb, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error { return nil }),
	}})
	testhook.Hook(sys, testhook.Hooks{Idle: 20 * time.Millisecond})
	stacktest.Launch(t, sys)
	readyz := func() (int, string) {
		w := httptest.NewRecorder()
		sys.HealthHandler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		return w.Code, w.Body.String()
	}
	stacktest.Eventually(t, func() bool { code, _ := readyz(); return code == http.StatusOK })

	deaf.on.Store(true)
	stacktest.Eventually(t, func() bool { code, _ := readyz(); return code == http.StatusServiceUnavailable })
	_, body := readyz()
	require.Contains(t, body, "do not arrive over the subscription")
	require.True(t, sys.Health(t.Context()).Live)
	deaf.on.Store(false)
	stacktest.Eventually(t, func() bool { code, _ := readyz(); return code == http.StatusOK })
}

// elsewhere publishes what a subscription is checked with on another channel, so that it does
// not arrive, as at a subscription that stayed at another server.
type elsewhere struct{ on atomic.Bool }

func (*elsewhere) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*elsewhere) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (e *elsewhere) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		args := cmd.Args()
		if word, ok := args[len(args)-1].(string); ok && e.on.Load() && strings.HasPrefix(word, "echo ") {
			args[len(args)-2] = "elsewhere"
		}
		return next(ctx, cmd)
	}
}
