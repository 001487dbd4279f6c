package node

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/process"
)

// execPause is for how long a topic is paused on the node whose command cannot be run.
const execPause = 30 * time.Second

// shellHandler returns a handler that runs a shell command. It returns a timer whose
// command cannot be run here to the other nodes.
func shellHandler(a *cli.App, script string, unable func(topic string, err error)) rawHandler {
	return func(ctx context.Context, t wakebell.Timer[[]byte]) error {
		err := a.RunShell(ctx, script, bytes.NewReader(t.Body), variables(t))
		if errors.Is(err, process.ErrCannotRun) {
			unable(t.Topic, err)
			return wakebell.Release(err)
		}
		return err
	}
}

// execGuard pauses topics on this node while their commands cannot be run. Without it a
// node whose script is missing would use up the attempts of all timers, although another
// node can handle them.
type execGuard struct {
	sys *wakebell.System
	log *slog.Logger

	mu     sync.Mutex
	paused map[string]*time.Timer // by topic
}

// unable pauses a topic for execPause. Then deliveries try the command again. It pauses
// one that is paused as well: a reload may have replaced its handler.
func (g *execGuard) unable(topic string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sys == nil {
		return // it stops
	}
	if err := g.sys.PauseLocal(topic); err != nil {
		g.log.Warn("topic cannot be paused on this node", "topic", topic, "err", err)
		return
	}
	if g.paused[topic] == nil {
		g.log.Error("command cannot be run; its timers are left to other nodes", "topic", topic, "pause", execPause, "err", err)
		g.paused[topic] = time.AfterFunc(execPause, func() { g.resume(topic) })
	}
}

func (g *execGuard) resume(topic string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.paused, topic)
	if g.sys == nil {
		return // it stops
	}
	if err := g.sys.ResumeLocal(topic); err != nil && !errors.Is(err, wakebell.ErrNoTopic) && !errors.Is(err, wakebell.ErrNotRunning) {
		g.log.Warn("topic cannot be resumed on this node", "topic", topic, "err", err)
	}
}

// guard makes the guard work on a System.
func (g *execGuard) guard(sys *wakebell.System) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sys = sys
}

// stop ends the guard with its System.
func (g *execGuard) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sys = nil
	for _, timer := range g.paused {
		timer.Stop()
	}
}

// variables returns the environment variables that describe a delivery.
func variables(t wakebell.Timer[[]byte]) []string {
	var list []string
	set := func(name, value string) {
		// An environment cannot hold NUL.
		list = append(list, "WAKEBELL_"+name+"="+strings.ReplaceAll(value, "\x00", "\uFFFD"))
	}
	set("TOPIC", t.Topic)
	set("ID", t.ID)
	set("ATTEMPT", strconv.Itoa(t.Attempt))
	set("ACTIVATION", output.Stamp(t.Activation))
	set("DELIVERED_AT", output.Stamp(t.Delivered))
	set("LATENESS_MS", strconv.FormatFloat(output.Millis(t.Lateness()), 'f', -1, 64))
	set("CONTENT_TYPE", t.ContentType)
	set("CORRELATION_ID", t.CorrelationID)
	set("REPLY_TO", t.ReplyTo)
	for _, h := range t.Headers {
		set("HEADER_"+upperSnake(h.Key), h.Value)
	}
	return list
}

func upperSnake(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		default:
			return '_'
		}
	}, name)
}
