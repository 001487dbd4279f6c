package node

import (
	"context"
	"log/slog"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
)

// work is what the handlers of a node share.
type work struct {
	app      *cli.App
	report   rawHandler // writes the line of a delivery
	commands *execGuard
	posts    *posting
}

// newWork returns what handlers share. fail ends the node, if its lines cannot be written.
func (f *nodeFlags) newWork(a *cli.App, log *slog.Logger, fail func(error)) (*work, error) {
	posts, err := newPosting(f.perHost, log)
	if err != nil {
		return nil, err
	}
	commands := &execGuard{log: log, lines: f.log.JSON(), paused: map[string]*time.Timer{}}
	return &work{a, reporting(output.NewLockedWriter(a.Stdout), fail), commands, posts}, nil
}

// handlers returns the handlers of topics and queues, whose commands and webhooks can be used.
func (w *work) handlers(ctx context.Context, all []*handled) (made []wakebell.Handler, err error) {
	for _, h := range all {
		if err := h.prepare(ctx, w.posts); err != nil {
			return nil, err
		}
		made = append(made, w.handler(h))
	}
	return made, nil
}

func (w *work) handler(h *handled) wakebell.Handler { return h.handler(w.app, w.report, w.commands) }

// of names the System whose handlers share it.
func (w *work) of(sys *wakebell.System) {
	w.posts.client.Store(sys.Client())
	w.commands.guard(sys)
}

func (w *work) end() {
	w.commands.stop()
	w.posts.close()
}
