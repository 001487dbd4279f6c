package scripts

import (
	"strconv"
	"strings"

	"github.com/wakebell/wakebell/messages/exchange"
)

// FlowWords is what lua/limits.lua reads: the limits, then for each release what it gives
// back.
func FlowWords(r *exchange.Request) string {
	words := []byte(r.Flow.Words())
	for i := range r.Settle {
		if s := &r.Settle[i]; s.Verdict == exchange.Release {
			words = appendInstant(append(words, ' '), s.Charge.Topic)
			words = appendInstant(append(words, '/'), s.Charge.Key)
		}
	}
	return string(words)
}

// appendInstant appends every digit of an instant, without an exponent.
func appendInstant(to []byte, x float64) []byte { return strconv.AppendFloat(to, x, 'f', -1, 64) }

// Charges notes what leases took of rate limits, from the word of an exchange's answer:
// when the token of the first one is back by the limit of the topic, and after a comma when
// that of each is by the limit of its key; - for none.
func (r *Reader) Charges(word string, leases []exchange.Lease, flow *exchange.Flow) {
	if word == "-" || r.Err != nil {
		return
	}
	first, ofKeys, byKey := strings.Cut(word, ",")
	topic := r.charge(first)
	step := 0.0
	if flow.RateLimit > 0 {
		step = flow.RatePer.Seconds() / float64(flow.RateLimit)
	}
	for i := range leases {
		if topic > 0 {
			leases[i].Charge.Topic = topic + float64(i)*step
		}
		if byKey {
			first, ofKeys, byKey = strings.Cut(ofKeys, ",")
			leases[i].Charge.Key = r.charge(first)
		}
	}
	if byKey {
		r.Fail("more charges than leases")
	}
}

func (r *Reader) charge(word string) float64 {
	x, err := ReadScore(word)
	if err != nil || x < 0 {
		r.Fail("a bad charge")
		return 0
	}
	return x
}
