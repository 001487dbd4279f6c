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

// parseReply reads the reply of lua/exchange.lua under flow control. Apart reports that the
// leases have no payloads.
func parseReply(text string, flow *exchange.Flow) (out *exchange.Reply, apart bool, err error) {
	r := replyReader{scripts.Reader{Text: text}}
	out = new(exchange.Reply)
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
	apart = r.Integer() != 0
	out.Held = scripts.Micros(int64(r.Integer()))
	out.KeyHeld = r.Integer()
	charges, runs := r.Word(), r.Word()
	out.Control = strings.Clone(r.Word())
	if out.Control == unknownMark {
		out.Control = ""
	}
	if r2.Err != nil || min(refused, dead, leases, out.KeyHeld) < 0 || out.Held < 0 || max(refused, dead, leases) > len(r.Text) {
		r.Fail("a bad first line")
	}
	if r.Err == nil && refused > 0 {
		out.Refused = make([]exchange.Refusal, refused)
		for i := range out.Refused {
			out.Refused[i] = r.Refusal()
		}
	}
	if r.Err == nil && dead > 0 {
		out.DeadLettered = make([]exchange.DeadLettered, dead)
		for i := range out.DeadLettered {
			out.DeadLettered[i] = r.deadLetter()
		}
	}
	if r.Err == nil && leases > 0 {
		r.leases(out, leases, copier{small: 2*len(text) <= idChunk+payloadChunk})
	}
	r.Charges(charges, out.Leases, flow)
	if runs != "-" {
		out.KeyRuns = r.keyRuns(runs, leases)
	}
	if r.Err == nil && r.Text != "" {
		r.Fail("more than announced")
	}
	if r.Err != nil {
		return nil, false, r.Err
	}
	return out, apart, nil
}

// deadLetter copies what it reads, because dead letters outlive the reply.
func (r *replyReader) deadLetter() exchange.DeadLettered {
	b := exchange.DeadLettered{Index: r.Integer(), Entry: strings.Clone(r.Word()), At: scripts.Instant(r.Score())}
	b.Claims, b.Failures, b.Activation = r.Integer(), r.Integer(), scripts.Instant(r.Score())
	idBytes, payloadBytes, keyBytes := r.Count(), r.Count(), r.Count()
	b.ID = strings.Clone(r.Take(idBytes))
	switch rest := r.Take(payloadBytes); {
	case b.Index == tooLarge:
		b.Index, b.Reason = -1, strings.Clone(rest)
	case b.Index == noPayload:
		b.Index, b.Reason = -1, exchange.PayloadMissing
	case b.Index < 0:
		b.Index, b.Payload, b.Reason = -1, []byte(rest), neverSettled
	}
	b.Key = strings.Clone(r.Take(keyBytes))
	return b
}

const (
	tooLarge  = -2 // the index of a timer whose payload is over the limit
	noPayload = -3 // the index of a timer whose payload is not in Redis
)

// neverSettled is the reason that lua/exchange.lua gives for a timer that was
// claimed too often without a verdict.
const neverSettled = "never settled"

func (r *replyReader) leases(out *exchange.Reply, n int, copies copier) {
	out.Leases = make([]exchange.Lease, n)
	for i := range out.Leases {
		l := &out.Leases[i]
		idBytes, payloadBytes := r.Count(), r.Count()
		l.Claims, l.Failures = r.Integer(), r.Integer()
		if l.Snoozed = l.Failures < 0; l.Snoozed {
			l.Failures = 0
		}
		l.Activation = scripts.Instant(r.Score())
		rest := len(r.Text)
		id, payload := r.Take(idBytes), r.Take(payloadBytes)
		if r.Err != nil {
			return
		}
		l.ID, l.Payload = copies.id(id, rest), copies.payload(payload, rest)
		l.Token = out.Extended
		l.Fault = layout.FaultOf(l.ID)
	}
}

// keyRuns reads which of n leases follow another of their key.
func (r *replyReader) keyRuns(text string, n int) []int {
	if r.Err != nil {
		return nil
	}
	numbers := strings.Split(text, ",")
	runs := make([]int, len(numbers))
	for i, number := range numbers {
		var ok bool
		if runs[i], ok = scripts.ReadCount(number); !ok || runs[i] > i || len(numbers) != n {
			r.Fail("bad key runs")
			return nil
		}
	}
	return runs
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

// copier copies the ids and payloads of leases out of a reply. Small ones share
// memory, so that a reply costs few allocations; a lease that is held for long keeps
// at most idChunk and payloadChunk bytes, not the whole reply. The ids of a reply
// within that bound are not copied.
type copier struct {
	small    bool // the reply is within the bound
	ids      strings.Builder
	payloads []byte
}

const (
	idChunk      = 512
	payloadChunk = 2 << 10
)

// id copies an id. Rest is the number of bytes of the reply from here.
func (c *copier) id(id string, rest int) string {
	switch {
	case c.small:
		return id
	case len(id) > idChunk/4:
		return strings.Clone(id)
	}
	if c.ids.Cap()-c.ids.Len() < len(id) {
		c.ids.Reset()
		c.ids.Grow(min(idChunk, rest))
	}
	at := c.ids.Len()
	c.ids.WriteString(id)
	return c.ids.String()[at:]
}

// payload copies a payload. Rest is the number of bytes of the reply from here.
func (c *copier) payload(payload string, rest int) []byte {
	if len(payload) > payloadChunk/4 {
		return []byte(payload)
	}
	if cap(c.payloads)-len(c.payloads) < len(payload) {
		c.payloads = make([]byte, 0, min(payloadChunk, rest))
	}
	at := len(c.payloads)
	c.payloads = append(c.payloads, payload...)
	return c.payloads[at:len(c.payloads):len(c.payloads)]
}
