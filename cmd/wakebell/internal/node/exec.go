package node

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/process"
	"github.com/wakebell/wakebell/internal/text"
)

// execPause is for how long a topic is paused on the node whose command cannot be run.
const execPause = 30 * time.Second

// shellHandler returns a handler that runs a shell command. It returns a timer whose
// command cannot be run here to the other nodes.
func shellHandler(a *cli.App, script string, g *execGuard) rawHandler {
	return func(ctx context.Context, t wakebell.Timer[[]byte]) error {
		stdout, stderr, end := g.output(a.Stderr, t)
		err := a.RunShell(ctx, script, bytes.NewReader(t.Body), stdout, stderr, variables(t))
		end()
		if errors.Is(err, process.ErrCannotRun) {
			g.unable(t.Topic, err)
			return wakebell.Release(err)
		}
		return err
	}
}

// execGuard pauses topics on this node while their commands cannot be run. Without it a
// node whose script is missing would use up the attempts of all timers, although another
// node can handle them.
type execGuard struct {
	sys   *wakebell.System
	log   *slog.Logger
	lines bool // the output of commands goes to the log, line by line

	mu     sync.Mutex
	paused map[string]*time.Timer // by topic
}

// output returns where the output of a command goes, and what to call when it has ended.
func (g *execGuard) output(out io.Writer, t wakebell.Timer[[]byte]) (stdout, stderr io.Writer, end func()) {
	if !g.lines {
		return out, out, func() {}
	}
	log := g.log.With("topic", t.Topic, "id", t.ID, "attempt", t.Attempt)
	first, second := &lineLog{log: log.With("stream", "stdout")}, &lineLog{log: log.With("stream", "stderr")}
	return first, second, func() {
		first.end()
		second.end()
	}
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

// longestLine is how many bytes of a line of a command's output an entry of the log has.
const longestLine = 16 << 10

// lineLog logs each line that is written to it. It is for one writer.
type lineLog struct {
	log  *slog.Logger
	rest []byte // of the last line
}

func (l *lineLog) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		line, after, ended := bytes.Cut(p, []byte("\n"))
		room := min(longestLine-len(l.rest), len(line))
		l.rest = append(l.rest, line[:room]...)
		switch {
		case room < len(line): // the line goes on in another entry
			l.end()
			p = p[room:]
			continue
		case ended:
			l.end()
		}
		p = after
	}
	return n, nil
}

// end logs what is left of a line without an end.
func (l *lineLog) end() {
	if len(l.rest) > 0 {
		l.log.Info("output of the command", "line", text.Valid(strings.TrimSuffix(string(l.rest), "\r")))
		l.rest = l.rest[:0]
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
