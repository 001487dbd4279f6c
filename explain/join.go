package explain

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/joinref"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/wakebelltype"
)

// joiner reads joins. A Client that does not is asked for none.
type joiner interface {
	Join(ctx context.Context, topic, id string) (wakebelltype.Join, error)
	Parts(ctx context.Context, topic, id string, p wakebelltype.Page) iter.Seq2[wakebell.PartEnd, error]
}

// partsNamed is how many parts of a join an explanation names.
const partsNamed = 3

// join is the join of a timer.
type join struct {
	wakebelltype.Join
	first []string // parts that have not ended, with their states
}

// join reads the join of a timer with these headers; nil: it has none, or it cannot be read. It
// looks for parts that have not ended among the first 1,000.
func (r *reader) join(headers wakebell.Headers) *join {
	_, has := headers.Get(wakebelltype.JoinHeader)
	c, ok := r.Client.(joiner)
	if has && !ok {
		r.unread = append(r.unread, "its join: this client reads no joins")
	}
	if !has || !ok {
		return nil
	}
	j := &join{}
	var err error
	if j.Join, err = c.Join(r.ctx, r.topic, r.id); err != nil {
		r.failed("its join", err)
		return nil
	}
	if j.Ended() == j.Parts {
		return j
	}
	for p, err := range c.Parts(r.ctx, r.topic, r.id, wakebelltype.Page{Limit: looked}) {
		if err != nil || len(j.first) == partsNamed {
			r.failed("the parts of its join", err)
			break
		}
		if p.End != "" {
			continue
		}
		state := "not stored"                                         // the audit finds out how it has ended
		if info, _, _ := r.Get(r.ctx, p.Topic, p.ID); info.ID != "" { // also with a body that is too large
			state = string(info.State)
		}
		j.first = append(j.first, fmt.Sprintf("%s of %s (%s)", text.Clip(p.ID, 100), p.Topic, state))
	}
	return j
}

// waiters returns the joins of which a timer with these headers is a part.
func (r *reader) waiters(headers wakebell.Headers) (list []string) {
	prefix := ""
	if p, ok := r.Client.(interface{ Prefix() string }); ok {
		prefix = p.Prefix()
	}
	for _, ref := range joinref.Of(headers) {
		list = append(list, fmt.Sprintf("%s of %s", text.Clip(ref.ID, 100), strings.TrimPrefix(ref.Topic, prefix)))
	}
	return list
}

// ofJoin returns the reasons of a timer whose instant, the time-out of its join, has not come.
func (f facts) ofJoin() []Wait {
	j := f.joined
	said := fmt.Sprintf("its join waits for %d of %d parts", j.Parts-j.Ended(), j.Parts)
	switch {
	case j.Complete():
		said = fmt.Sprintf("all %d parts of its join have ended, and the next audit of a node makes it due", j.Parts)
	case j.Open:
		said = fmt.Sprintf("its join is open to more parts, and %d of %d have not ended", j.Parts-j.Ended(), j.Parts)
	}
	if len(j.first) > 0 {
		said += ": " + strings.Join(j.first, ", ")
	}
	if int64(len(j.first)) < j.Parts-j.Ended() && len(j.first) > 0 {
		said += " and others"
	}
	return []Wait{
		{Cause: CauseJoin, Text: said, Do: f.command("get", f.id)},
		{Cause: CauseNotDue, Until: f.timer.Due, Text: "its instant, the time-out of the join, has not come", Do: f.command("reschedule", f.id)},
	}
}

// joinText says what ended the wait of a join whose timer is due, and which joins wait for the
// timer.
func (f facts) joinText(waits []Wait) (said string) {
	isDue := !slices.ContainsFunc(waits, func(w Wait) bool { return w.Cause == CauseJoin })
	if f.joined != nil && isDue {
		said = "; " + joinref.EndOfWait(f.joined.Join)
	}
	if len(f.waiters) > 0 {
		said += "; a join waits for it: " + strings.Join(f.waiters, ", ")
	}
	return said
}
