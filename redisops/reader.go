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

const maxMicros = int64(1<<63-1) / int64(time.Microsecond)

func (r *reader) refusal() exchange.Refusal {
	index := r.integer()
	why := exchange.Why(strings.Index("scl", r.word()) + 1)
	if index < 0 || why == 0 {
		r.fail("a bad refusal")
	}
	return exchange.Refusal{Index: index, Why: why}
}
