package redisops

import (
	"strings"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
)

// replyReader reads the parts of an exchange's answer.
type replyReader struct{ reader }

// parseReply reads the answer of lua/exchange.lua. The ids share the reply's
// memory, the payloads one copy of it.
func parseReply(text string) (*exchange.Reply, error) {
	r := replyReader{reader{text: text}}
	out := new(exchange.Reply)
	now := r.score()
	token := r.word()
	r2 := reader{text: token + " "}
	out.Now, out.Remaining = instant(now), between(now, r2.score())
	out.Extended = exchange.Token(strings.Clone(token))
	next := r.integer()
	out.Next = time.Duration(min(next, int(maxMicros))) * time.Microsecond
	out.Healed = r.integer()
	out.Orphans = r.integer() != 0
	refused, buried, leases := r.integer(), r.integer(), r.integer()
	if r2.err != nil || min(refused, buried, leases) < 0 || max(refused, buried, leases) > len(r.text) {
		r.fail("a bad first line")
	}
	if r.err == nil && refused > 0 {
		out.Refused = make([]exchange.Refusal, refused)
		for i := range out.Refused {
			out.Refused[i] = r.refusal()
		}
	}
	if r.err == nil && buried > 0 {
		out.Buried = make([]exchange.Burial, buried)
		for i := range out.Buried {
			out.Buried[i] = r.burial()
		}
	}
	if r.err == nil && leases > 0 {
		r.leases(out, leases)
	}
	if r.err == nil && r.text != "" {
		r.fail("more than announced")
	}
	if r.err != nil {
		return nil, r.err
	}
	return out, nil
}

// burial copies what it reads: dead letters outlive the reply.
func (r *replyReader) burial() exchange.Burial {
	b := exchange.Burial{Index: r.integer(), Entry: strings.Clone(r.word()), At: instant(r.score())}
	b.Claims, b.Failures, b.Activation = r.integer(), r.integer(), instant(r.score())
	idBytes, payloadBytes := r.count(), r.count()
	b.ID = strings.Clone(r.take(idBytes))
	switch told := r.take(payloadBytes); {
	case b.Index == tooLarge:
		b.Index, b.Reason = -1, strings.Clone(told)
	case b.Index < 0:
		b.Index, b.Payload, b.Reason = -1, []byte(told), neverSettled
	}
	return b
}

// tooLarge is the index of a timer whose payload is over the limit.
const tooLarge = -2

// neverSettled is the reason that the claim gives in lua/exchange.lua.
const neverSettled = "never settled"

func (r *replyReader) leases(out *exchange.Reply, n int) {
	all := []byte(r.text)
	out.Leases = make([]exchange.Lease, n)
	for i := range out.Leases {
		l := &out.Leases[i]
		idBytes, payloadBytes := r.count(), r.count()
		l.Claims, l.Failures = r.integer(), r.integer()
		l.Activation = instant(r.score())
		l.ID = r.take(idBytes)
		from := len(all) - len(r.text)
		r.take(payloadBytes)
		if r.err != nil {
			return
		}
		l.Payload = all[from : from+payloadBytes : from+payloadBytes]
		l.Token = out.Extended
		l.Fault = faultOf(l.ID)
	}
}
