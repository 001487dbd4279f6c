package actors_test

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors"
	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

func (w *world) schedule(words []string) {
	entry := timers.Entry{ID: words[0], Payload: []byte("body"), In: w.duration(words[1])}
	topic := w.topics[0]
	for _, word := range words[2:] {
		if word == "keep" {
			entry.Policy = wakebelltype.PolicyKeep
		}
		if on, ok := strings.CutPrefix(word, "on="); ok {
			topic = on
		}
	}
	end := w.begin()
	done, err := w.store.Schedule(w.t.Context(), topic, entry)
	require.NoError(w.t, err)
	end("%s %v", words[0], done[0].Outcome)
}

func (w *world) cancel(words []string) {
	end := w.begin()
	found, err := w.store.Cancel(w.t.Context(), w.topics[0], words[0])
	require.NoError(w.t, err)
	end("%s was %v", words[0], found[0])
}

func (w *world) advance(words []string) {
	<-time.After(w.duration(words[0]))
}

func (w *world) timers([]string) {
	for _, topic := range w.topics {
		listed, _, err := w.store.List(w.t.Context(), topic, timers.Filter{})
		require.NoError(w.t, err)
		for _, t := range listed {
			state := "due " + w.at(t.Due)
			if t.Running {
				state = "running, lease ends " + w.at(t.LeaseEnds)
			}
			if t.Claims > 0 {
				state += fmt.Sprintf(", claims %d, failures %d, activation %s", t.Claims, t.Failures, w.at(t.Activation))
			}
			w.note("redis has %s: %s", t.ID, state)
		}
		dead, _, err := w.store.DeadLetters(w.t.Context(), topic, wakebelltype.DeadFilter{}, "", 0)
		require.NoError(w.t, err)
		for _, d := range dead {
			w.note("redis has dead letter %s: %q, claims %d, failures %d", d.ID, d.Reason, d.Claims, d.Failures)
		}
		if len(listed)+len(dead) == 0 {
			w.note("redis has nothing")
		}
	}
}

func (w *world) at(t time.Time) string {
	return "+" + t.Sub(w.start).Truncate(100*time.Microsecond).String()
}

// counters prints the counters of a node, summed over its topics. It omits those
// that count idle polls.
func (w *world) counters(words []string) {
	totals := map[string]int64{}
	var names []string
	for _, c := range w.find(words[0]).runtime.Counters() {
		v := reflect.ValueOf(c)
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			if n, ok := v.Field(i).Interface().(int64); ok && n > 0 {
				totals[name] += n
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	var parts []string
	for _, name := range slices.Compact(names) {
		if name != "Exchanges" && name != "Empty" && name != "Peeks" {
			parts = append(parts, fmt.Sprintf("%s %d", name, totals[name]))
		}
	}
	w.note("counters: %s", strings.Join(parts, ", "))
}

func (w *world) peeks(words []string) {
	total := int64(0)
	for _, c := range w.find(words[0]).runtime.Counters() {
		total += c.Peeks
	}
	w.note("%d peeks were answered", total)
}

func (w *world) exchanges([]string) {
	w.mu.Lock()
	total := 0
	for _, n := range w.sent {
		total += n
	}
	pollers := len(w.sent)
	w.sent = map[string]int{}
	w.mu.Unlock()
	w.note("%d exchanges were sent, by %d pollers", total, pollers)
}

func (w *world) server(words []string) {
	w.mu.Lock()
	w.down = words[0] == "down"
	w.mu.Unlock()
}

func (w *world) fault(words []string) {
	n := w.find(words[0])
	f, topic := fault{kind: words[1]}, ""
	for _, word := range words[2:] {
		if on, ok := strings.CutPrefix(word, "on="); ok {
			topic = on
		} else {
			f.after = w.duration(word)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, wire := range n.wires {
		if topic == "" || topic == wire.Name() {
			wire.faults = append(wire.faults, f)
		}
	}
}

func (w *world) crash(words []string) {
	n := w.find(words[0])
	for _, wire := range n.wires {
		pid := actor.NewPID(n.system.Address(), n.runtime.PID().GetId()+"/"+actors.PollerName(wire.Name()))
		n.system.Root.Send(pid, actortest.CrashNow{})
	}
}

// drain drains and stops a node in the background.
func (w *world) drain(words []string) {
	n, timeout := w.find(words[0]), w.duration(words[1])
	n.stopped = true
	go func() {
		drained, err := n.runtime.Drain(timeout)
		if err != nil {
			w.note("%sdrain failed: %v", w.of(n), err)
		}
		for _, t := range drained.GetTopics() {
			w.note("%sdrained; unfinished %v, unsettled %d", w.of(n), t.GetUnfinished(), t.GetUnsettled())
		}
		if err := n.runtime.Stop(); err != nil {
			w.note("%sstop failed: %v", w.of(n), err)
		}
	}()
}

func (w *world) pause(words []string) {
	for _, topic := range w.topics {
		require.NoError(w.t, w.find(words[0]).runtime.Pause(topic, words[1] == "on"))
	}
}

func (w *world) remove(words []string) {
	n := w.find(words[0])
	go func() {
		_, err := n.runtime.Remove(words[1], 0)
		require.NoError(w.t, err)
		w.note("%stopic %s removed", w.of(n), words[1])
	}()
}

// peer executes the commands that a Python process on the same keys executes.
func (w *world) peer(words []string) {
	id := words[1]
	keys := w.store.Keys()
	timeline, payloads := keys.Timeline+":"+w.topics[0], keys.Payloads+":"+w.topics[0]
	score := func(after string) float64 {
		return float64(time.Now().Add(w.duration(after)).UnixMicro()) / 1e6
	}
	switch words[0] {
	case "schedule":
		_, err := w.redis.ZAdd(timeline, score(words[2]), id)
		require.NoError(w.t, err)
		w.redis.HSet(payloads, id, `{"data": "body", "headers": {}}`)
		w.note("peer scheduled %s", id)
	case "claim":
		due, err := w.redis.ZScore(timeline, id)
		if now := score("0s"); err != nil || due > now {
			w.note("peer cannot claim %s", id)
			return
		}
		_, err = w.redis.ZAdd(timeline, score(words[2]), id)
		require.NoError(w.t, err)
		w.note("peer claimed %s", id)
	case "commit":
		_, _ = w.redis.ZRem(timeline, id) // as for ZREM, an absent member is no error
		w.redis.HDel(payloads, id)
		w.note("peer committed %s", id)
	default:
		require.Fail(w.t, "unknown: peer "+strconv.Quote(words[0]))
	}
}
