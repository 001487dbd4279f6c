package timers

import (
	"strings"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// replyReader reads the parts of an exchange's reply.
type replyReader struct{ scripts.Reader }

// parseReply reads the reply of lua/exchange.lua. The ids share the reply's memory;
// the payloads share one copy of it.
func parseReply(text string) (*exchange.Reply, error) {
	r := replyReader{scripts.Reader{Text: text}}
	out := new(exchange.Reply)
	now := r.Score()
	token := r.Word()
	r2 := scripts.Reader{Text: token + " "}
	out.Now, out.Remaining = scripts.Instant(now), scripts.Between(now, r2.Score())
	out.Extended = exchange.Token(strings.Clone(token))
	next := r.Integer()
	out.Next = time.Duration(min(next, int(scripts.MaxMicros))) * time.Microsecond
	out.Healed = r.Integer()
	out.Orphans = r.Integer() != 0
	refused, dead, leases := r.Integer(), r.Integer(), r.Integer()
	if r2.Err != nil || min(refused, dead, leases) < 0 || max(refused, dead, leases) > len(r.Text) {
		r.Fail("a bad first line")
	}
	if r.Err == nil && refused > 0 {
		out.Refused = make([]exchange.Refusal, refused)
		for i := range out.Refused {
			out.Refused[i] = r.Refusal()
		}
	}
	if r.Err == nil && dead > 0 {
		out.Buried = make([]exchange.Burial, dead)
		for i := range out.Buried {
			out.Buried[i] = r.deadLetter()
		}
	}
	if r.Err == nil && leases > 0 {
		r.leases(out, leases)
	}
	if r.Err == nil && r.Text != "" {
		r.Fail("more than announced")
	}
	if r.Err != nil {
		return nil, r.Err
	}
	return out, nil
}

// deadLetter copies what it reads, because dead letters outlive the reply.
func (r *replyReader) deadLetter() exchange.Burial {
	b := exchange.Burial{Index: r.Integer(), Entry: strings.Clone(r.Word()), At: scripts.Instant(r.Score())}
	b.Claims, b.Failures, b.Activation = r.Integer(), r.Integer(), scripts.Instant(r.Score())
	idBytes, payloadBytes := r.Count(), r.Count()
	b.ID = strings.Clone(r.Take(idBytes))
	switch rest := r.Take(payloadBytes); {
	case b.Index == tooLarge:
		b.Index, b.Reason = -1, strings.Clone(rest)
	case b.Index < 0:
		b.Index, b.Payload, b.Reason = -1, []byte(rest), neverSettled
	}
	return b
}

// tooLarge is the index of a timer whose payload is over the limit.
const tooLarge = -2

// neverSettled is the reason that lua/exchange.lua gives for a timer that was
// claimed too often without a verdict.
const neverSettled = "never settled"

func (r *replyReader) leases(out *exchange.Reply, n int) {
	copies := copier{all: r.Text}
	out.Leases = make([]exchange.Lease, n)
	for i := range out.Leases {
		l := &out.Leases[i]
		idBytes, payloadBytes := r.Count(), r.Count()
		l.Claims, l.Failures = r.Integer(), r.Integer()
		l.Activation = scripts.Instant(r.Score())
		at := len(copies.all) - len(r.Text)
		r.Take(idBytes)
		r.Take(payloadBytes)
		if r.Err != nil {
			return
		}
		l.ID, l.Payload = copies.cut(at, idBytes, payloadBytes)
		l.Token = out.Extended
		l.Fault = layout.FaultOf(l.ID)
	}
}

// leaseRecord is the record of a timer that was claimed; lua/prelude.lua writes it.
type leaseRecord struct {
	leased           bool
	claims, failures int
	activation       float64
	lastError        string
	first            float64 // when a debounced timer was first scheduled; else 0
}

// readRecord reads a record that belongs to a score, as current in lua/prelude.lua
// does. The record is void if another process has written the score since, or if it
// cannot be read.
func readRecord(text string, score float64) (leaseRecord, bool) {
	f := strings.SplitN(text, ":", 7)
	if len(f) < 5 || (f[0] != "l" && f[0] != "w") {
		return leaseRecord{}, false
	}
	wrote, err := scripts.ReadScore(f[4])
	if err != nil || wrote != score {
		return leaseRecord{}, false
	}
	r := leaseRecord{leased: f[0] == "l"}
	var counted [2]bool
	r.claims, counted[0] = scripts.ReadCount(f[1])
	r.failures, counted[1] = scripts.ReadCount(f[2])
	r.activation, err = scripts.ReadScore(f[3])
	if err != nil || !counted[0] || !counted[1] {
		return leaseRecord{}, false
	}
	if len(f) > 5 {
		before, first, _ := strings.Cut(f[5], "~")
		if before != "" {
			if _, err := scripts.ReadScore(before); err != nil {
				return leaseRecord{}, false
			}
		}
		if first != "" {
			if r.first, err = scripts.ReadScore(first); err != nil {
				return leaseRecord{}, false
			}
		}
	}
	if len(f) == 7 {
		r.lastError = f[6]
	}
	return r, true
}

// copier copies ids and payloads out of a reply. Small leases share a copy.
type copier struct {
	all  string
	from int    // the offset of text
	text string // a copy of a part of all, which several leases share
	copy []byte // a second copy of it, for payloads
}

// sharedBytes bounds what leases share, so that a lease that is held for long does
// not retain the memory of the whole reply.
const sharedBytes = 1 << 10

// cut returns the id and the payload that begin at an offset.
func (c *copier) cut(at, idBytes, payloadBytes int) (id string, payload []byte) {
	size := idBytes + payloadBytes
	if size > sharedBytes/2 {
		return strings.Clone(c.all[at : at+idBytes]), []byte(c.all[at+idBytes : at+size])
	}
	if at+size > c.from+len(c.text) {
		c.from, c.text = at, strings.Clone(c.all[at:min(at+sharedBytes, len(c.all))])
		c.copy = []byte(c.text)
	}
	at -= c.from
	return c.text[at : at+idBytes], c.copy[at+idBytes : at+size : at+size]
}
