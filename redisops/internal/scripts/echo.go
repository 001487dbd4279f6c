package scripts

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// echoPings is how many intervals of pings are between two echoes: 30 s by default.
	echoPings = 2
	// maxEchoPings bounds the interval while subscriptions stay deaf, 8 min by default: each
	// one after them makes every topic poll.
	maxEchoPings = 32

	echoPrefix = "echo "
	echoSuffix = ":echo" // of a key that never exists
)

// errDeaf ends a subscription over which published messages do not arrive.
var errDeaf = errors.New("published messages do not arrive over it")

// echoScript publishes a message to its sender, and only on a server that accepts writes: a
// server that is a replica by now refuses the DEL, and go-redis dials the address again.
var echoScript = redis.NewScript(`redis.call('DEL', KEYS[1])
return redis.call('PUBLISH', ARGV[1], ARGV[2])`)

// echoCheck checks that what is published over the connections of commands arrives over the
// subscription. It does not if the address of Redis has moved to another server while the
// one before lives on: pings are answered, and nothing is published there.
type echoCheck struct {
	l     Listener
	every time.Duration

	mu     sync.Mutex
	sent   string // the word that was published last; empty: it has arrived, or none was
	server string // that commands reached at the first echo; empty: unknown
	heard  bool   // a word has arrived
}

// take reports whether a message is an echo, of this process or of another one.
func (e *echoCheck) take(text string) bool {
	word, is := strings.CutPrefix(text, echoPrefix)
	if !is {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if word == e.sent {
		e.sent, e.heard = "", true
		e.l.Health.set("")
	}
	return true
}

// run publishes a word at each interval until ctx ends, and calls deaf if the one before has
// not arrived. If it may not publish, there is no check.
func (e *echoCheck) run(ctx context.Context, deaf func()) {
	if len(e.l.Channels) == 0 {
		return
	}
	tick := time.NewTicker(e.every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if e.missing() {
			e.report(ctx)
			deaf()
			return
		}
		if e.server == "" {
			e.server = e.l.identity(ctx)
		}
		if err := e.send(ctx); IsDenied(err) {
			e.l.Log.DebugContext(ctx, "subscription is not checked: the Redis user may not publish on its channel", "channel", e.l.Channels[0], "err", err)
			return
		}
	}
}

func (e *echoCheck) missing() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sent != ""
}

// send publishes a new word. A word whose publication failed is not expected.
func (e *echoCheck) send(ctx context.Context) error {
	expect := func(word string) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.sent = word
	}
	word, channel := rand.Text(), e.l.Channels[0]
	expect(word)
	err := echoScript.Run(ctx, e.l.RDB, []string{channel + echoSuffix}, channel, echoPrefix+word).Err()
	if err != nil {
		expect("")
	}
	return err
}

// report makes it a problem of the process, and logs the first of several in a row.
func (e *echoCheck) report(ctx context.Context) {
	now := cmp.Or(e.l.identity(ctx), "unknown")
	level := slog.LevelError
	if e.l.Health.Problem() != "" {
		level = slog.LevelDebug
	}
	before := cmp.Or(e.server, "unknown")
	e.l.Log.Log(ctx, level, "published messages do not arrive over the subscription; subscribing again",
		"channel", e.l.Channels[0], "subscribed_at", before, "commands_at", now)
	e.l.Health.set("published messages do not arrive over the subscription: it began at the redis with the run id " + before +
		", and commands reach that with " + now + "; the address may have moved")
}

// identity names the server that commands reach by its run id and port; empty: the user may
// not read it, or there are several.
func (l Listener) identity(ctx context.Context) string {
	if _, single := l.RDB.(*redis.Client); !single {
		return ""
	}
	info, err := l.RDB.Info(ctx, "server").Result()
	if err != nil {
		return ""
	}
	fields := map[string]string{}
	for lines := bufio.NewScanner(strings.NewReader(info)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		fields[name] = value
	}
	if fields["run_id"] == "" {
		return ""
	}
	return fields["run_id"] + " (port " + fields["tcp_port"] + ")"
}

// Hearing is whether what is published arrives over the subscriptions of a process. A nil
// pointer takes no note.
type Hearing struct {
	mu      sync.Mutex
	problem string
}

func (h *Hearing) set(problem string) {
	if h != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.problem = problem
	}
}

// Problem says what is wrong, until a later message has arrived; empty: nothing is.
func (h *Hearing) Problem() string {
	if h == nil {
		return ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.problem
}
