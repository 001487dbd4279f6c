// Package explain says of a timer, a recurring schedule or a gate what happened to it, why
// it waits, and until when. It asks for what clients answer anyway, so it works on a Redis
// and through a node. It writes nothing.
package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/attended"
	"github.com/wakebell/wakebell/internal/expiry"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Client is what an explanation of a timer is read from. A wakebell.Client and the Client
// of package remote implement it.
type Client interface {
	Get(ctx context.Context, topic, id string) (wakebell.Info, wakebell.Content, error)
	List(ctx context.Context, topic string, f wakebell.Filter, p wakebelltype.Page) iter.Seq2[wakebell.Info, error]
	Overview(ctx context.Context, topics ...string) ([]wakebelltype.Overview, error)
	Shards(ctx context.Context, topic string) (wakebelltype.ShardLayout, error)
	History(ctx context.Context, topic string, f wakebelltype.HistoryFilter, p wakebelltype.Page) iter.Seq2[wakebelltype.Attempt, error]
	LastDead(ctx context.Context, topic string, n int) ([]wakebell.DeadLetter, error)
	Audit(ctx context.Context, f wakebelltype.AuditFilter, p wakebelltype.Page) iter.Seq2[wakebelltype.AuditEntry, error]
}

// Explanation is what is known of something that waits, or waited.
type Explanation struct {
	// State is that of the timer (wakebell.State), or StateDead, StateEnded or StateUnknown
	// of a timer that is not stored any more. Of a recurring schedule it is StateWaits,
	// StateOverdue, StatePaused or StateFinished, of a gate StateFree, StateHeld or
	// StateQueued.
	State string

	// Summary is a sentence: what it does now.
	Summary string

	// Waits are the reasons for which it does not run now, that which matters most first;
	// empty: it runs, has ended, or is about to run. One that is leased may wait for those before
	// it in its key run.
	Waits []Wait

	// Earliest is when it can run at the earliest, as far as that is known; zero: it is
	// not, because a Wait does not end by itself, or it runs or has ended.
	Earliest time.Time

	// Past is what happened, the oldest first.
	Past []Step

	// Commands show or change more, without "wakebell".
	Commands []string

	// Unread says what could not be read, and why.
	Unread []string
}

// The states of what is not a stored timer.
const (
	StateDead    = "dead"    // it became a dead letter
	StateEnded   = "ended"   // its last attempt ended it
	StateUnknown = "unknown" // nothing of it is stored

	StateWaits    = "waits"
	StateOverdue  = "overdue"
	StatePaused   = "paused"
	StateFinished = "finished" // it has no further run

	StateFree   = "free"
	StateHeld   = "held"
	StateQueued = "queued" // held, and others wait
)

// Cause is why something waits.
type Cause string

// The causes.
const (
	CauseNotDue   Cause = "not-due"   // its instant has not come
	CauseRetry    Cause = "retry"     // the last attempt failed, and the next has not come
	CauseJoin     Cause = "join"      // parts of its join have not ended, or the join is open
	CauseNever    Cause = "never"     // its instant is infinite
	CausePaused   Cause = "paused"    // by an operator
	CauseNoNode   Cause = "no-node"   // no node handles the topic
	CauseNoBeat   Cause = "no-beat"   // no beat fires recurring schedules
	CauseBreaker  Cause = "breaker"   // the circuit breakers of nodes are open
	CauseDamage   Cause = "damage"    // data of the topic was lost
	CauseKey      Cause = "key"       // others of its key come first: PerKey
	CauseKeyRate  Cause = "key-rate"  // RateLimitByKey
	CauseRate     Cause = "rate"      // RateLimit
	CauseInFlight Cause = "in-flight" // MaxInFlight
	CauseMoving   Cause = "moving"    // timers move to other shards
	CauseBehind   Cause = "behind"    // others that are due come first
	CauseHolder   Cause = "holder"    // another process has the turn
	CauseFault    Cause = "fault"     // it cannot be read
)

// Wait is a reason to wait.
type Wait struct {
	Cause Cause
	Text  string    // a sentence without an instant
	Since time.Time // since when it holds; zero: unknown
	Until time.Time // when it ends by itself at the earliest; zero: it does not, or that is unknown
	Do    string    // the command that ends it or shows more, without "wakebell"; empty: none
}

// Step is something that happened.
type Step struct {
	At   time.Time
	Text string
}

// looked is how many timers of a topic, and of its dead letters, an explanation looks at.
const looked = 1000

// Timer explains a timer, which need not exist any more. It reads a bounded part of the
// topic: the first 1,000 timers and the last 1,000 dead letters. Errors are those of Get other
// than ErrNotFound; what else cannot be read is in Unread.
func Timer(ctx context.Context, c Client, topic, id string) (Explanation, error) {
	info, content, err := c.Get(ctx, topic, id)
	stored := err == nil || errors.Is(err, wakebell.ErrTooLarge) && info.ID != ""
	if !stored && !errors.Is(err, wakebell.ErrNotFound) {
		return Explanation{}, err
	}
	r := &reader{ctx: ctx, Client: c, topic: topic, id: id}
	f := facts{topic: topic, id: id, overview: r.overview(), attempts: r.attempts()}
	f.changes = r.changesOf("topic", cmp.Or(f.overview.Topic, topic))
	if f.now = attended.Due(f.overview); f.now.IsZero() { // nothing is due
		f.now = time.Now()
	}
	var e Explanation
	if stored {
		f.timer, f.expiry = info, limitOf(content.Headers, f.overview.Reports)
		f.moving, f.joined, f.waiters = r.moving(), r.join(content.Headers), r.waiters(content.Headers)
		if info.State == wakebell.StateParked || info.IsDue(f.now) {
			f.first = r.list(wakebell.Filter{})
		}
		if info.State == wakebell.StateParked || info.State == wakebell.StateRunning && info.Key != "" {
			f.running = r.list(wakebell.Filter{Running: true})
		}
		if info.State == wakebell.StateRunning && f.overview.Nodes > 0 {
			f.alive = r.alive()
		}
		e = f.present()
	} else {
		f.letter = r.letter()
		e = f.absent()
	}
	e.Past, e.Unread = f.past(), r.unread
	return e, ctx.Err()
}

// limitOf returns the time after its instant within which a timer with these headers must
// begin, or else the least that nodes have reported of its topic.
func limitOf(headers wakebell.Headers, reports []wakebelltype.NodeReport) time.Duration {
	var of expiry.Topic
	for _, r := range reports {
		if after := r.State.ExpireAfter; after > 0 && (of.After == 0 || after < of.After) {
			of.After = after
		}
	}
	return of.Limit(headers)
}

// reader reads what explains a timer, and notes what it cannot read.
type reader struct {
	ctx context.Context
	Client
	topic, id string
	unread    []string
}

func (r *reader) failed(what string, err error) {
	if err != nil {
		r.unread = append(r.unread, fmt.Sprintf("%s: %v", what, err))
	}
}

func (r *reader) overview() (o wakebelltype.Overview) {
	all, err := r.Overview(r.ctx, r.topic)
	if err == nil && len(all) > 0 {
		o, err = all[0], all[0].Err
	}
	if err != nil {
		o.Nodes = -1
	}
	r.failed("the topic", err)
	return o
}

// alive asks the nodes of the topic, if the client can: none that is dead answers.
func (r *reader) alive() []wakebelltype.NodeAnswer {
	c, can := r.Client.(interface {
		AskNodes(ctx context.Context, topics ...string) ([]wakebelltype.NodeAnswer, error)
	})
	if !can {
		return nil
	}
	answers, err := c.AskNodes(r.ctx, r.topic)
	r.failed("its nodes", err)
	return answers
}

func (r *reader) moving() bool {
	l, err := r.Shards(r.ctx, r.topic)
	r.failed("the shards of the topic", err)
	return l.Moving
}

func (r *reader) attempts() (list []wakebelltype.Attempt) {
	const last = 20
	for a, err := range r.History(r.ctx, r.topic, wakebelltype.HistoryFilter{ID: r.id, Last: last}, wakebelltype.Page{}) {
		if err != nil {
			r.failed("its attempts", err)
			break
		}
		list = append(list, a)
	}
	return list
}

// changesOf returns the last that operators did with a topic, by its full name, or with a
// recurring schedule or a gate.
func (r *reader) changesOf(kind wakebelltype.AuditOperation, name string) (list []wakebelltype.AuditEntry) {
	const last = 100
	for entry, err := range r.Audit(r.ctx, wakebelltype.AuditFilter{Operation: kind, Name: name, Last: last}, wakebelltype.Page{}) {
		if err != nil {
			r.failed("what operators changed", err)
			break
		}
		list = append(list, entry)
	}
	return list
}

func (r *reader) letter() *wakebell.DeadLetter {
	letters, err := r.LastDead(r.ctx, r.topic, looked)
	r.failed("the dead letters", err)
	for i := len(letters) - 1; i >= 0; i-- { // the newest is the last
		if letters[i].ID == r.id {
			return &letters[i]
		}
	}
	return nil
}

func (r *reader) list(f wakebell.Filter) (list []wakebell.Info) {
	for info, err := range r.List(r.ctx, r.topic, f, wakebelltype.Page{Limit: looked}) {
		if err != nil {
			r.failed("the timers of the topic", err)
			break
		}
		list = append(list, info)
	}
	return list
}
