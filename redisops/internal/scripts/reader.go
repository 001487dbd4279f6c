package scripts

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
)

// Reader reads a packed reply. After its first error it returns zero values and
// sets Err.
type Reader struct {
	Text string // unread rest
	Err  error
}

// Word reads up to a space or a newline.
func (r *Reader) Word() string {
	i := strings.IndexAny(r.Text, " \n")
	if i < 0 {
		r.Fail("a word without an end")
		return ""
	}
	w := r.Text[:i]
	r.Text = r.Text[i+1:]
	return w
}

// Count reads a number that is not negative and at most the length of the rest,
// which bounds allocations for it.
func (r *Reader) Count() int {
	n := r.Integer()
	if n < 0 || n > len(r.Text) {
		r.Fail("a count out of bounds")
		return 0
	}
	return n
}

// Integer reads an integer.
func (r *Reader) Integer() int {
	w := r.Word()
	n, err := strconv.Atoi(w)
	if err != nil {
		r.Fail("not an integer")
	}
	return n
}

// Score reads an instant.
func (r *Reader) Score() float64 {
	x, err := ReadScore(r.Word())
	if err != nil {
		r.Fail("not a score")
	}
	return x
}

// Take reads n bytes.
func (r *Reader) Take(n int) string {
	if n > len(r.Text) {
		r.Fail("cut off")
		return ""
	}
	s := r.Text[:n]
	r.Text = r.Text[n:]
	return s
}

// Fail records the first error and ends reading.
func (r *Reader) Fail(why string) {
	if r.Err == nil {
		r.Err = fmt.Errorf("%w: %s, %d bytes before the end", ErrReply, why, len(r.Text))
	}
	r.Text = ""
}

// MaxMicros is the maximum number of microseconds in a time.Duration.
const MaxMicros = int64(1<<63-1) / int64(time.Microsecond)

// Micros returns a duration of so many microseconds, or the nearest that there is.
func Micros(us int64) time.Duration {
	return time.Duration(min(max(us, -MaxMicros), MaxMicros)) * time.Microsecond
}

// Refusal reads why a settlement was refused.
func (r *Reader) Refusal() exchange.Refusal {
	index := r.Integer()
	why := exchange.RefusalReason(strings.Index("scl", r.Word()) + 1)
	if index < 0 || why == 0 {
		r.Fail("a bad refusal")
	}
	return exchange.Refusal{Index: index, Reason: why}
}
