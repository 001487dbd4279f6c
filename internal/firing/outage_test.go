package firing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/recur"
)

// Engines survive an outage (weakness 3), and no run is lost or repeated.
func TestOutage(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.put("a", 10*time.Second, func(e *recur.Entry) { e.Ours.Misfire = recur.MisfireAll })
		hook := &outage{}
		w.rdb.AddHook(hook)
		w.engine(nil)
		w.advance(15 * time.Second)
		hook.set(true)
		w.advance(30 * time.Second)
		hook.set(false)
		w.advance(6 * time.Second)
		fires := strings.Fields(w.recorded())
		require.Len(t, fires, 5)
		for i, fire := range fires {
			require.Contains(t, fire, fmt.Sprintf("a@%d0#%d", i+1, i+1))
		}
	})
}

// outage is a hook that makes all commands fail while it is set.
type outage struct {
	mu   sync.Mutex
	down bool
}

func (o *outage) set(down bool) { o.mu.Lock(); o.down = down; o.mu.Unlock() }

func (o *outage) check() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.down {
		return errors.New("LOADING")
	}
	return nil
}

func (o *outage) DialHook(next redis.DialHook) redis.DialHook { return next }

func (o *outage) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := o.check(); err != nil {
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

func (o *outage) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if err := o.check(); err != nil {
			return err
		}
		return next(ctx, cmds)
	}
}
