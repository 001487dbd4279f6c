package node

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/config"
)

// reloading applies changes of the configuration file to a running node.
type reloading struct {
	node *nodeFlags
	sys  *wakebell.System
	work *work
	log  *slog.Logger
}

// onHangup reads the file again after each SIGHUP, until the returned function is
// called. Without a file, SIGHUP keeps its meaning.
func (r *reloading) onHangup(ctx context.Context) (end func()) {
	if r.node.config == "" {
		return func() {}
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	ctx, cancel := context.WithCancel(ctx)
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-signals:
				r.reload(ctx)
			}
		}
	})
	return func() {
		signal.Stop(signals)
		cancel()
		reading.Wait()
	}
}

func (r *reloading) reload(ctx context.Context) {
	next, _, err := load(r.node.config, r.node.given)
	if err != nil {
		r.log.Warn("changed configuration cannot be used; keeping the previous one", "file", r.node.config, "err", err)
		return
	}
	if len(next.handled) == 0 && len(r.node.handled) > 0 {
		// An editor or a copy may have truncated it a moment ago.
		r.log.Warn("changed configuration has no topics and queues; keeping the previous one", "file", r.node.config)
		return
	}
	r.log.Info("configuration was read again", "file", r.node.config)
	r.compareTop(next)
	running := map[string]*handled{}
	for _, h := range r.node.handled {
		running[h.name] = h
	}
	for _, h := range next.handled {
		old := running[h.name]
		delete(running, h.name)
		if err := r.apply(ctx, old, h); err != nil {
			r.log.Error("configuration cannot be applied; SIGHUP tries it again", "topic", h.name, "err", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(running)) {
		r.log.Info("topic removed", "topic", name)
		r.remove(running[name])
	}
}

// compareTop changes the level of the log, and logs the other changed fields outside
// of sections. They need a restart; topics and queues have got those that apply to
// them.
func (r *reloading) compareTop(next *nodeFlags) {
	subscribers := r.node.address != "" || r.node.http != ""
	for _, flag := range slices.Sorted(maps.Keys(next.top)) {
		from, to := r.node.top[flag], next.top[flag]
		switch {
		case from == to, flag == "topic", flag == "queue":
		case flag == "log-level":
			r.node.log.SetLevel(to)
			r.node.top[flag] = to
			r.log.Info("setting changed", "field", flag, "from", from, "to", to)
		case r.node.flags.Lookup(flag) != nil && r.isHandling(flag):
			if subscribers {
				r.log.Warn("setting needs a restart for topics of subscribers", "field", flag, "from", config.Shown(flag, from), "to", config.Shown(flag, to))
			}
		case flag == "redis": // it may have a password
			r.log.Warn("setting needs a restart; keeping the previous value", "field", flag)
		default:
			r.log.Warn("setting needs a restart; keeping the previous value", "field", flag, "from", from, "to", to)
		}
	}
}

// isHandling reports whether a flag is about topics or queues.
func (r *reloading) isHandling(flag string) bool {
	return newHandled("", false).flags.Lookup(flag) != nil || newHandled("", true).flags.Lookup(flag) != nil
}

// apply changes a topic or queue from its running form, nil for none, to the next.
// When it fails, the topic keeps its form or, if it is not handled any more, has none.
func (r *reloading) apply(ctx context.Context, from, to *handled) error {
	if err := to.prepare(ctx, r.work.posts); err != nil {
		return err
	}
	if from == nil {
		r.log.Info("topic added", "topic", to.name)
		return r.add(ctx, to)
	}
	same, live := from.queue == to.queue, true
	if same {
		var changed bool
		changed, live = r.compare(from, to)
		if !changed {
			return nil
		}
	}
	if same && live {
		if err := to.retune(r.sys, from); err != nil {
			return err
		}
		r.replace(from, to)
		return nil
	}
	r.remove(from)
	return r.add(ctx, to)
}

// compare logs the fields that differ, and reports whether any does, and whether all
// that do can change without a new handler.
func (r *reloading) compare(from, to *handled) (changed, live bool) {
	live = true
	to.flags.VisitAll(func(f *pflag.Flag) {
		was := from.flags.Lookup(f.Name).Value.String()
		if is := f.Value.String(); was != is {
			changed, live = true, live && to.live(f.Name)
			r.log.Info("setting changed", "topic", to.name, "field", f.Name, "from", config.Shown(f.Name, was), "to", config.Shown(f.Name, is))
		}
	})
	return changed, live
}

func (r *reloading) add(ctx context.Context, h *handled) error {
	if err := r.sys.Add(ctx, r.work.handler(h)); err != nil {
		return err
	}
	r.node.handled = append(r.node.handled, h)
	return nil
}

// remove drains a topic or queue. It is not handled any more, even if handlers do not
// return.
func (r *reloading) remove(h *handled) {
	if err := r.sys.Remove(h.name); err != nil {
		r.log.Warn("topic was not removed in an orderly way", "topic", h.name, "err", err)
		if !errors.Is(err, wakebell.ErrUnfinished) && !errors.Is(err, wakebell.ErrNoTopic) {
			return
		}
	}
	r.node.handled = slices.DeleteFunc(r.node.handled, func(other *handled) bool { return other == h })
}

func (r *reloading) replace(from, to *handled) {
	r.node.handled[slices.Index(r.node.handled, from)] = to
}
