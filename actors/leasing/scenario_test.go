package leasing

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/guard"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

var update = flag.Bool("update", false, "rewrite the outputs in testdata")

// TestScenarios runs the scenarios in testdata: a core, whose caller is the scenario. A
// scenario is a text of blocks,
//
//	events for the core, one a line
//	----
//	what the core has done, each with the time since the scenario began
//
// with comments (#) and empty lines between. The events are methods of world, listed in its
// commands. go test -run Scenarios -update rewrites what the core does.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			got := play(newWorld(t), string(want))
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
				return
			}
			require.Equal(t, string(want), got, "go test -run Scenarios -update rewrites it")
		})
	}
}

// play runs a scenario and returns its text with what the core does in this run.
func play(w *world, scenario string) string {
	w.t.Helper()
	var out strings.Builder
	pending, inOutput := false, false
	for line := range strings.Lines(scenario) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "----":
			require.True(w.t, pending, "---- without an event")
			out.WriteString("----\n")
			for _, event := range w.events {
				out.WriteString(strings.TrimRight(event, " ") + "\n")
			}
			w.events, pending, inOutput = nil, false, true
		case line == "":
			inOutput = false
			out.WriteString("\n")
		case inOutput: // of the last run
		case strings.HasPrefix(line, "#"):
			out.WriteString(line + "\n")
		default:
			w.event(line)
			pending = true
			out.WriteString(line + "\n")
		}
	}
	require.False(w.t, pending, "events without ----")
	return out.String()
}

func (w *world) commands() map[string]func(words []string) {
	return map[string]func([]string){
		"core":     w.create,    // core [key=value…], see settings
		"advance":  w.pass,      // advance DURATION
		"answer":   w.answer,    // answer [STREAM] [claims=a,b>a: b follows a] [early=c:200ms] [failures=n] [next=DURATION] [refused=INDEX:WHY] [dead=INDEX] [held=DURATION] [control=MARK] [orphans]
		"peeked":   w.peeked,    // peeked [next=DURATION]: the answer to a peek of the watch
		"unpeeked": w.unpeeked,  // unpeeked unavailable|REASON: a peek of the watch fails
		"fail":     w.fail,      // fail [STREAM] unavailable | stale | TEXT
		"begin":    w.begin,     // begin ID: a handler takes the lease
		"end":      w.finish,    // end ID ack | fail | reject | release | panic | crash | undeliverable
		"settle":   w.settleNow, // settle ID ack | …: the handler settles it and continues
		"extend":   w.extendNow, // extend ID: the handler extends it
		"hint":     w.hint,      // hint due DURATION | free | subscribed | control | check ID
		"override": w.read,      // override [paused] [mark=MARK] [concurrent=N] | unavailable
		"reported": func([]string) { w.core.Reported() },
		"hold":     func([]string) { w.core.Hold(w.now) },
		"probe":    func([]string) { w.core.Probe() },
		"resume":   func(words []string) { w.core.Resume(w.now, w.duration(words[0])) },
		"drain":    func(words []string) { w.core.Drain(w.now, w.duration(words[0])) },
		"pause":    func([]string) { w.core.Apply(w.now, w.core.override.own, true) },
		"unpause":  func([]string) { w.core.Apply(w.now, w.core.override.own, false) },
	}
}

// event passes one event to the core, and lets it advance.
func (w *world) event(line string) {
	w.t.Helper()
	words := strings.Fields(line)
	command, ok := w.commands()[words[0]]
	require.True(w.t, ok, "unknown event: %s", line)
	if command(words[1:]); words[0] != "core" && words[0] != "advance" {
		w.advance()
	}
}

// options returns the key=value words, and the others.
func options(words []string) (set map[string]string, rest []string) {
	set = map[string]string{}
	for _, word := range words {
		if key, value, ok := strings.Cut(word, "="); ok {
			set[key] = value
		} else {
			rest = append(rest, word)
		}
	}
	return set, rest
}

func (w *world) create(words []string) {
	set := map[string]string{
		"concurrent": "5", "lease": "10s", "age": "0s", "poll": "1s", "max_poll": "5s", "failures": "3", "window": "0s", "early": "off",
		"peek": "off", "override": "off", "prefetch": "off", "breaker": "off", "panics": "retry", "reports": "off", "run": "0", "forwards": "off",
	}
	given, _ := options(words)
	for key, value := range given {
		require.Contains(w.t, set, key)
		set[key] = value
	}
	cfg := Config{
		Policy: &Policy{Window: w.duration(set["window"]), NoPrefetch: set["prefetch"] == "off", KeyRun: w.number(set["run"])},
		Peeks:  set["peek"] == "on", Overrides: set["override"] == "on", Reports: set["reports"] == "on", Forwards: set["forwards"] == "on",
	}
	cfg.PanicBackoff, cfg.FinalCrashes, cfg.RetryOnLeaseExpiry = set["panics"] == "backoff", set["panics"] == "final", set["panics"] == "expire"
	if set["early"] == "on" {
		cfg.Window = AutomaticWindow
	}
	var breaker *guard.Breaker
	if set["breaker"] == "on" {
		breaker = guard.New(wakebelltype.Breaker{FailureRatio: 0.5, Deliveries: 2, Window: time.Minute, OpenFor: 10 * time.Second}, w.now)
	}
	var flow exchange.Flow
	if cfg.KeyRun > 0 {
		flow.PerKey = 1
	}
	w.open(cfg, Settings{
		Flow: flow, MaxConcurrent: w.number(set["concurrent"]), LeaseTTL: w.duration(set["lease"]), MaxLeaseAge: w.duration(set["age"]),
		PollingInterval: w.duration(set["poll"]), MaxPollingInterval: w.duration(set["max_poll"]),
		Retry: Retry{Initial: time.Second, Max: time.Hour, MaxFailures: w.number(set["failures"])},
	}, breaker)
}

func (w *world) pass(words []string) { w.until(w.now.Add(w.duration(words[0]))) }

// flight returns the flight of the stream that words name, or of the first.
func (w *world) flight(words []string) (*Flight, []string) {
	stream := 0
	if len(words) > 0 {
		if n, err := strconv.Atoi(words[0]); err == nil {
			stream, words = n, words[1:]
		}
	}
	f := w.flights[stream]
	require.NotNil(w.t, f, "stream %d has no flight", stream)
	delete(w.flights, stream)
	return f, words
}

var refusals = map[string]exchange.RefusalReason{"superseded": exchange.Superseded, "cancelled": exchange.Cancelled, "lost": exchange.Lost}

func (w *world) answer(words []string) {
	f, words := w.flight(words)
	set, flags := options(words)
	r := &exchange.Reply{Now: w.now, Remaining: f.Request.LeaseTTL, Next: -1, Orphans: len(flags) > 0, Control: set["control"]}
	failures := 0
	if set["failures"] != "" {
		failures = w.number(set["failures"])
	}
	for id := range strings.SplitSeq(set["claims"], ",") {
		if id != "" {
			l := exchange.Lease{Token: "1", Activation: w.now, Claims: 1 + failures, Failures: failures}
			var before string
			l.ID, before, _ = strings.Cut(id, ">") // which it follows
			follows := 1 + slices.IndexFunc(r.Leases, func(other exchange.Lease) bool { return other.ID == before })
			r.KeyRuns = append(r.KeyRuns, follows)
			if strings.HasPrefix(l.ID, "bad") {
				l.Fault = "no handler can have it"
			}
			r.Leases = append(r.Leases, l)
		}
	}
	if id, in, ok := strings.Cut(set["early"], ":"); ok {
		r.Leases = append(r.Leases, exchange.Lease{ID: id, Token: "1", Activation: w.now.Add(w.duration(in)), Claims: 1})
	}
	if set["next"] != "" {
		r.Next = w.duration(set["next"])
	}
	if set["held"] != "" {
		r.Held = w.duration(set["held"])
	}
	if index, why, ok := strings.Cut(set["refused"], ":"); ok {
		r.Refused = []exchange.Refusal{{Index: w.number(index), Reason: refusals[why]}}
	}
	if set["dead"] != "" {
		i := w.number(set["dead"])
		r.DeadLettered = []exchange.DeadLettered{{Index: i, ID: f.Request.Settle[i].ID}}
	}
	w.core.Answered(w.now, w.now, f, r)
}

func (w *world) peeked(words []string) {
	set, _ := options(words)
	answer := exchange.PeekReply{Now: w.now, Next: -1}
	if set["next"] != "" {
		answer.Next = w.duration(set["next"])
	}
	var again bool
	if w.peekAt, again = w.watch.Answered(w.now, answer); again {
		w.note("peek again in %v", w.peekAt.Sub(w.now))
		return
	}
	w.core.Watched(w.now, w.watch, w.now, answer, nil)
}

func (w *world) unpeeked(words []string) {
	err := errors.New(strings.Join(words, " "))
	if words[0] == "unavailable" {
		err = exchange.ErrUnavailable
	}
	w.core.Watched(w.now, w.watch, w.now, exchange.PeekReply{}, err)
}

func (w *world) fail(words []string) {
	f, words := w.flight(words)
	err := map[string]error{"unavailable": exchange.ErrUnavailable, "stale": exchange.ErrStale}[words[0]]
	if err == nil {
		err = errors.New(strings.Join(words, " "))
	}
	w.flights[f.Stream()] = f // it is sent again
	w.core.Failed(w.now, f, err)
}

// lease returns the lease of an id, which a handler has taken from the queue.
func (w *world) lease(id string) *Lease {
	l := w.leases[id]
	require.NotNil(w.t, l, id)
	for i, queued := range w.queue {
		if queued == l {
			w.queue = append(w.queue[:i:i], w.queue[i+1:]...)
			break
		}
	}
	l.Run.(*run).begun = true
	return l
}

var outcomes = map[string]Outcome{
	"ack": {}, "fail": {Kind: Failed, Reason: "no"}, "reject": {Kind: Rejected, Reason: "never"}, "release": {Kind: Released},
	"panic": {Kind: Panicked, Reason: "panic: oops"}, "crash": {Kind: Crashed, Reason: "its actor failed"}, "undeliverable": {Kind: Undeliverable, Reason: "garbage"}, "skip": {Kind: Skipped},
}

func (w *world) begin(words []string)  { w.lease(words[0]) }
func (w *world) finish(words []string) { w.core.Finished(w.now, w.lease(words[0]), outcomes[words[1]]) }

func (w *world) settleNow(words []string) {
	if err := w.core.Settle(w.now, w.lease(words[0]), outcomes[words[1]]); err != nil {
		w.note("%s not settled: %v", words[0], err)
	}
}

func (w *world) extendNow(words []string) {
	if err := w.core.Extend(w.lease(words[0])); err != nil {
		w.note("%s not extended: %v", words[0], err)
	}
}

func (w *world) hint(words []string) {
	h := exchange.Hint{Sent: w.now}
	switch words[0] {
	case "due":
		h.Kind, h.In = exchange.HintDue, w.duration(words[1])
	case "free":
		h.Kind = exchange.HintFree
	case "subscribed":
		h.Kind = exchange.HintSubscribed
	case "control":
		h.Kind = exchange.HintControl
	case "check":
		h.Kind, h.ID = exchange.HintCheck, words[1]
	default:
		require.Fail(w.t, "unknown hint", words[0])
	}
	w.core.Hint(w.now, h)
}

func (w *world) read(words []string) {
	set, flags := options(words)
	o := Override{Mark: set["mark"]}
	var err error
	switch fmt.Sprint(flags) {
	case "[paused]":
		o.Paused = true
	case "[unavailable]":
		err = exchange.ErrUnavailable
	}
	if set["concurrent"] != "" {
		o.Apply = func(s *Settings) { s.MaxConcurrent = w.number(set["concurrent"]) }
	}
	w.core.OverrideRead(w.now, o, err)
}

func (w *world) duration(s string) time.Duration {
	w.t.Helper()
	d, err := time.ParseDuration(s)
	require.NoError(w.t, err)
	return d
}

func (w *world) number(s string) int {
	w.t.Helper()
	n, err := strconv.Atoi(s)
	require.NoError(w.t, err)
	return n
}
