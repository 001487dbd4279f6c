package timers

import (
	"strings"
	"time"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// scheduleCall returns the keys and arguments of lua/schedule.lua, with the payloads or
// without, and with all keys in which the order of timers is stored or with the first.
func scheduleCall(k Keyspace, topic string, entries []Entry, apart, counting, keyed bool) (keys []string, args []any) {
	const fixed = 6
	n, words := len(entries), 2
	if apart {
		words = 1
	}
	instants := n
	if sameInstant(entries) {
		instants = 1
	}
	// Keys.Of would make all keys of the topic, an allocation for each.
	keys = append(make([]string, 0, 6), // with room for a fence
		k.key(k.Timeline, topic), k.key(k.Payloads, topic), k.key(k.Leases, topic), k.channel(k.Hint, topic), "")
	if keys[4] = keys[0]; counting { // a key that is not used needs no right of its own
		keys[4] = k.key(k.Counts, topic)
	}
	if apart {
		keys = append(keys, TopicKeys{exchange: k.key(k.Exchange, topic)}.apart())
	}
	policies, onces := make([]byte, n), make([]byte, n)
	args = make([]any, fixed+words*n+instants, fixed+words*n+instants+2)
	args[0], args[1], args[2], args[3], args[4], args[5] = policies, onces, instants, words, "0", "0"
	if counting {
		args[4] = "1"
	}
	var windows []any
	for i := range entries {
		e := &entries[i]
		policies[i], onces[i] = policyCodes[e.Policy], '-'
		args[fixed+words*i] = &e.ID
		if !apart {
			args[fixed+words*i+1] = e.Payload
		}
		if i < instants {
			args[fixed+words*n+i] = instantArg(e.At, e.In)
		}
		if e.Policy == wakebelltype.PolicyDebounce {
			args = append(args, scripts.DelayMicros(e.MaxDelay))
		}
		if e.Once > 0 {
			onces[i] = 'o'
			keys = append(keys, TopicKeys{once: k.key(k.Once, topic)}.Mark(e.ID))
			windows = append(windows, scripts.DelayMicros(e.Once))
		}
	}
	args = append(args, windows...)
	keys = append(keys, k.key(k.TimerKeys, topic))
	if keyed {
		args[5] = "1"
		keys = append(keys, k.key(k.KeyOrder, topic), k.key(k.KeyStates, topic))
		for i := range entries {
			args = append(args, entries[i].Key)
		}
	}
	return keys, args
}

// counting reports whether what is scheduled is counted.
func (s *Timers) counting() bool { return !s.NoCounts && !s.uncounted.Load() }

func hasKeys(entries []Entry) bool {
	for i := range entries {
		if entries[i].Key != "" {
			return true
		}
	}
	return false
}

// sameInstant reports whether all entries have the same instant or delay.
func sameInstant(entries []Entry) bool {
	for i := range entries {
		if entries[i].In != entries[0].In || !entries[i].At.Equal(entries[0].At) {
			return false
		}
	}
	return true
}

// readScheduled reads the reply of lua/schedule.lua.
func readScheduled(entries []Entry, reply string, confirmed int) (out []wakebelltype.Scheduled, err error) {
	out = make([]wakebelltype.Scheduled, len(entries))
	r := scripts.Reader{Text: reply}
	if rest, all := strings.CutPrefix(reply, "a "); all {
		return allCreated(entries, out, strings.TrimSuffix(rest, "\n"), confirmed)
	}
	var last string // the due instant that was read last, because those of a batch are often equal
	var due time.Time
	for i := range entries {
		outcome, word, found := r.Word(), r.Word(), r.Word()
		if word != last || due.IsZero() {
			score, err := scripts.ReadScore(word)
			if err != nil {
				return nil, err
			}
			last, due = word, scripts.Instant(score)
		}
		out[i] = wakebelltype.Scheduled{
			ID: entries[i].ID, Due: due, Replicas: confirmed, Outcome: wakebelltype.Outcome(strings.Index(outcomeCodes, outcome) + 1),
		}
		if found != "-" {
			score, err := scripts.ReadScore(found)
			if err != nil {
				return nil, err
			}
			out[i].Found = scripts.Instant(score)
		}
	}
	if r.Err == nil && r.Text != "" {
		r.Fail("more than announced")
	}
	if r.Err != nil {
		return nil, r.Err
	}
	return out, nil
}

// allCreated returns the results if no id existed and all timers are due at once.
func allCreated(entries []Entry, out []wakebelltype.Scheduled, due string, confirmed int) ([]wakebelltype.Scheduled, error) {
	score, err := scripts.ReadScore(due)
	if err != nil {
		return nil, err
	}
	at := scripts.Instant(score)
	for i := range out {
		out[i] = wakebelltype.Scheduled{ID: entries[i].ID, Due: at, Outcome: wakebelltype.OutcomeCreated, Replicas: confirmed}
	}
	return out, nil
}

// instantArg formats an instant, or a delay if the instant is zero, for a script.
func instantArg(at time.Time, in time.Duration) string {
	if at.IsZero() {
		return "+" + scripts.DelayMicros(in)
	}
	return scripts.ScoreText(at)
}
