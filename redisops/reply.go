package redisops

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
)

// reader walks a packed reply. After its first fault it yields zero values, and
// err says so.
type reader struct {
	text string // what is left
	err  error
}

// word reads up to a space or a newline.
func (r *reader) word() string {
	i := strings.IndexAny(r.text, " \n")
	if i < 0 {
		r.fail("a word without an end")
		return ""
	}
	w := r.text[:i]
	r.text = r.text[i+1:]
	return w
}

// count reads a number that is not negative and at most what is left, which
// bounds anything allocated for it.
func (r *reader) count() int {
	n := r.integer()
	if n < 0 || n > len(r.text) {
		r.fail("a count out of bounds")
		return 0
	}
	return n
}

func (r *reader) integer() int {
	w := r.word()
	n, err := strconv.Atoi(w)
	if err != nil {
		r.fail("not an integer")
	}
	return n
}

func (r *reader) score() float64 {
	x, err := readScore(r.word())
	if err != nil {
		r.fail("not a score")
	}
	return x
}

func (r *reader) take(n int) string {
	if n > len(r.text) {
		r.fail("cut off")
		return ""
	}
	s := r.text[:n]
	r.text = r.text[n:]
	return s
}

func (r *reader) fail(why string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s, %d bytes before the end", errReply, why, len(r.text))
	}
	r.text = ""
}

// parseReply reads the answer of lua/exchange.lua. What it returns does not keep
// the memory of the text.
func parseReply(text string) (*exchange.Reply, error) {
	r := reader{text: text}
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

const maxMicros = int64(1<<63-1) / int64(time.Microsecond)

func (r *reader) refusal() exchange.Refusal {
	index := r.integer()
	why := exchange.Why(strings.Index("scl", r.word()) + 1)
	if index < 0 || why == 0 {
		r.fail("a bad refusal")
	}
	return exchange.Refusal{Index: index, Why: why}
}

// burial copies what it reads: dead letters outlive the reply.
func (r *reader) burial() exchange.Burial {
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

func (r *reader) leases(out *exchange.Reply, n int) {
	s := shared{all: r.text}
	out.Leases = make([]exchange.Lease, n)
	for i := range out.Leases {
		l := &out.Leases[i]
		idBytes, payloadBytes := r.count(), r.count()
		l.Claims, l.Failures = r.integer(), r.integer()
		l.Activation = instant(r.score())
		at := len(s.all) - len(r.text)
		r.take(idBytes)
		r.take(payloadBytes)
		if r.err != nil {
			return
		}
		l.ID, l.Payload = s.cut(at, idBytes, payloadBytes)
		l.Token = out.Extended
		l.Fault = faultOf(l.ID)
	}
}

// shared copies ids and payloads out of a reply, those of small leases together.
type shared struct {
	all  string
	from int    // where text begins
	text string // a part of all that several leases share, and a copy of it
	copy []byte
}

// sharedBytes bounds what leases share, so that one that is held for long does not
// keep the memory of all that came with it.
const sharedBytes = 1 << 10

// cut returns the id and the payload that begin at an offset.
func (s *shared) cut(at, idBytes, payloadBytes int) (id string, payload []byte) {
	size := idBytes + payloadBytes
	if size > sharedBytes/2 {
		return strings.Clone(s.all[at : at+idBytes]), []byte(s.all[at+idBytes : at+size])
	}
	if at+size > s.from+len(s.text) {
		s.from, s.text = at, strings.Clone(s.all[at:min(at+sharedBytes, len(s.all))])
		s.copy = []byte(s.text)
	}
	at -= s.from
	return s.text[at : at+idBytes], s.copy[at+idBytes : at+size : at+size]
}
