package fleet

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltype"
)

// join is a timer that waits for others.
type join struct {
	write *write
	parts []*write
	limit time.Time // when it is due at the latest
}

// joinIDs is what ids of timers that wait for others begin with.
const joinIDs = "join-"

// join schedules a timer that waits for three others, in one call, which is made again until it has
// an answer. One of the others may be cancelled later.
func (f *fleet) join(o Op) {
	c := f.clients[o.A%len(f.clients)]
	in := 5*time.Second + time.Duration(o.C)*time.Second
	w := f.writing(subjectOf(jobs, joinIDs+o.body()), o.body(), "", c.name(), 0)
	j := &join{write: w, limit: w.due.Add(in)}
	var drafts []wakebell.Draft
	var parts []wakebelltype.Part
	for i := range 3 {
		t := timer{topic: topics[(o.B+i)%len(topics)], id: fmt.Sprintf("part-%d-%d", o.Number, i), body: fmt.Sprintf("%s-part-%d", o.body(), i)}
		t.in = delays[(o.A+i*o.B)%8]
		j.parts = append(j.parts, f.writing(subjectOf(t.topic, t.id), t.body, "", c.name(), t.in))
		parts = append(parts, wakebelltype.Part{Topic: t.topic, ID: t.id})
		drafts = append(drafts, t.draft())
	}
	drafts = append(drafts, wakebell.NewTopic[string](jobs).Draft(w.body, wakebell.ID(idOf(w.subject)), wakebell.In(in), wakebell.After(parts...)))
	f.record.mu.Lock()
	f.record.joins = append(f.record.joins, j)
	f.record.mu.Unlock()
	all, lives, err := f.scheduleJoin(c, o, drafts)
	for i, p := range append(j.parts[:len(j.parts):len(j.parts)], w) {
		p.single = true
		a := answer{}
		if err == nil {
			a.due = all[i].Due
		}
		f.wrote(p, a, err, lives)
	}
	if o.C%4 == 0 && err == nil {
		<-time.After(time.Duration(o.B) * 50 * time.Millisecond)
		f.cancelPart(o, j.parts[0].subject)
	}
}

// scheduleJoin makes a call again until it has an answer. lives reports whether it has been without effect
// if it failed.
func (f *fleet) scheduleJoin(c *client, o Op, drafts []wakebell.Draft) (all []wakebelltype.Scheduled, lives bool, err error) {
	err, lives = fmt.Errorf("no session: %w", wakebell.ErrUnavailable), true
	for limit := time.Now().Add(50 * time.Second); time.Now().Before(limit) && f.ctx.Err() == nil; <-time.After(time.Second) {
		s := c.running()
		if s == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(f.ctx, 5*time.Second)
		all, err = s.remote.Schedule(remote.WithKey(ctx, o.body()), drafts...)
		cancel()
		if err == nil {
			return all, true, nil
		}
		lives = lives && outcomeOf(err) == refused
	}
	return nil, lives, err
}

// cancelPart cancels a timer for which another one waits.
func (f *fleet) cancelPart(o Op, subject string) {
	n := f.nodes[o.A%len(f.nodes)]
	run := n.running()
	if run == nil {
		return
	}
	w := f.writing(subject, "", "", n.name(), 0)
	ctx, cancel := context.WithTimeout(f.ctx, callTimeout)
	defer cancel()
	a, err := timers{run.sys.Client()}.cancel(ctx, topicOf(subject), idOf(subject))
	f.wrote(w, a, err, n.running() == run)
}

// partsOf reads how the parts of a join have ended, in its handler; nil: the timer has no join.
func partsOf(ctx context.Context, t wakebell.Timer[string]) (ends []wakebelltype.End, err error) {
	if !strings.HasPrefix(t.ID, joinIDs) {
		return nil, nil
	}
	for part, err := range t.Parts(ctx) {
		if err != nil {
			return nil, err
		}
		ends = append(ends, part.End)
	}
	return ends, nil
}

// readEnds are those that handlers of joins have read, by the body of the join.
type readEnds struct {
	mu  sync.Mutex
	all map[string][]read
}

// read is what a handler of a join has read.
type read struct {
	at   time.Time
	ends []wakebelltype.End
}

func (e *readEnds) note(body string, of []wakebelltype.End) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all == nil {
		e.all = map[string][]read{}
	}
	e.all[body] = append(e.all[body], read{time.Now(), of})
}
