package simulate

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/joins"
	"github.com/wakebell/wakebell/redisops/progress"
	"github.com/wakebell/wakebell/redisops/shards"
	"github.com/wakebell/wakebell/wakebelltype"
)

// The topics of timers that wait for others, and of these, which are the parts of joins.
const reports, tasks, steps = "reports", "tasks", "steps" // tasks has shards, steps gets others

// workflow is timers that wait for others, and these, with what is known of both. An id of a
// part is used once, that of a report again and again. The journey has no second Redis.
type workflow struct {
	*side
	api    *joins.Store
	notes  *joins.Store // of nodes that may die between two commands
	kept   *progress.Store
	joins  map[string]*join  // by the ids of their timers, the last one of each
	topics map[string]string // of all timers, by id
	known  []string          // those that may be parts, in the order in which they were planned
	ended  map[string]ended  // how timers have ended that do not exist any more
	loose  map[string]bool   // timers whose nodes could not know that they are parts
	gives  map[string]string // the results of the runs that have succeeded last
	lost   map[string]bool   // timers whose last notes Redis has lost
	target int               // of a change of the shards of steps; 0: none
}

type ended struct {
	how wakebelltype.End
	at  time.Time
}

// join is a join as Redis must have it.
type join struct {
	joins.Ref
	timer  *version // nil: it is not scheduled yet
	open   bool
	closed time.Time // the last call that has closed it
	parts  []string
	added  map[string]time.Time // when
	told   map[string]bool      // those whose timers say that they are its parts
	ends   map[string]wakebelltype.End
	ran    bool // its timer was run, because all parts had ended
}

func (j *join) complete() bool { return !j.open && len(j.ends) == len(j.parts) }

// waiting returns the workflow, and begins it.
func (s *sim) waiting() *workflow {
	if s.workflow != nil {
		return s.workflow
	}
	mortal, its := s.mortal()
	topics := s.clients[0].store
	w := &workflow{
		side: s.beside(its),
		api:  joins.New(topics), notes: joins.New(s.store(mortal)), kept: progress.New(topics.Timers()),
		joins: map[string]*join{}, topics: map[string]string{}, ended: map[string]ended{}, loose: map[string]bool{}, gives: map[string]string{}, lost: map[string]bool{},
	}
	if _, err := topics.Divide(s.ctx, tasks, 2); err != nil {
		s.broken("errors", "divide: %v", err)
	}
	s.workflow, s.reshaped = w, time.Now()
	return w
}

// keep keeps what is known of what Redis has, and returns what has the judge expect that again. A
// join whose writes are lost does not exist, even if they were acknowledged. Nodes settle timers whose
// notes are lost.
func (w *workflow) keep() (restore func()) {
	if w == nil {
		return func() {}
	}
	timers, of, joins, to := w.side.keep(), maps.Clone(w.joins), map[*join]join{}, w.target
	for _, j := range of {
		was := *j
		was.parts, was.added, was.told, was.ends = slices.Clone(j.parts), maps.Clone(j.added), maps.Clone(j.told), maps.Clone(j.ends)
		joins[j] = was
	}
	ended, loose, gives := maps.Clone(w.ended), maps.Clone(w.loose), maps.Clone(w.gives)
	return func() {
		for j, was := range joins {
			for id := range j.ends {
				w.lost[id] = w.lost[id] || was.ends[id] == ""
			}
			*j = was
		}
		timers()
		w.joins, w.ended, w.loose, w.gives = of, ended, loose, gives
		if to != 0 && to != w.target {
			w.target = to
			w.reshardOn(to, new(shards.Progress))
		}
	}
}

// of returns the join of a timer: one without parts if there is none, because Redis has lost it.
func (w *workflow) of(id string) *join {
	if j := w.joins[id]; j != nil {
		return j
	}
	return &join{Ref: joins.Ref{Topic: w.topics[id], ID: id}}
}

// pick returns a join; nil: there is none yet.
func (w *workflow) pick(o Op) *join {
	ids := slices.Sorted(maps.Keys(w.joins))
	if len(ids) == 0 {
		return nil
	}
	return w.joins[ids[o.A%len(ids)]]
}

// poll starts the pollers of a node, and its audits.
func (w *workflow) poll(n *node) {
	for i, topic := range []string{reports, tasks, steps} {
		n.track(&n.flows[i], n.store, topic, func(p *poller) { p.account, p.limits = w, &exchange.Flow{} })
	}
	if n.audits != n.life+1 {
		n.audits = n.life + 1
		w.audit(n)
	}
}

// audit audits joins in a node, as a System does, and again later.
func (w *workflow) audit(n *node) {
	next, err := joins.New(n.store).Audit(w.sim.ctx)
	if err != nil {
		w.sim.broken("errors", "audit: %v", err)
	}
	w.lookAtAll()
	switch {
	case w.sim.plan.Shape == Days:
		next = seldom * idle
	case next < 0:
		next = idle
	}
	n.after(min(max(next, 50*time.Millisecond), seldom*idle), func() { w.audit(n) })
}

// id returns the next id of a topic.
func (w *workflow) id(topic string) string {
	w.count++
	return topic[:1] + "w" + strconv.Itoa(w.count)
}

func (w *workflow) part(id string) wakebelltype.Part {
	return wakebelltype.Part{Topic: w.topics[id], ID: id}
}

// planned returns a timer that is about to be scheduled.
func (w *workflow) planned(topic, id string, in time.Duration) joins.Timer {
	if w.topics[id] == "" && topic != reports {
		w.known = append(w.known, id)
	}
	w.topics[id] = topic
	return joins.Timer{Part: w.part(id), Life: in}
}

// some returns parts that were planned before, which may have ended.
func (w *workflow) some(n, drawn int, not string) (parts []wakebelltype.Part) {
	for i := range min(n, len(w.known)) {
		if id := w.known[len(w.known)-1-(drawn+7*i)%len(w.known)]; id != not && !slices.Contains(parts, w.part(id)) {
			parts = append(parts, w.part(id))
		}
	}
	return parts
}

// partDelays are those of parts, and joinDelays until the instants of joins.
var (
	partDelays = []time.Duration{0, 0, time.Second, 10 * time.Second, time.Minute, 10 * time.Minute}
	joinDelays = []time.Duration{3 * time.Second, 30 * time.Second, 5 * time.Minute, time.Hour, time.Hour, 3 * time.Hour}
)

// fresh returns new parts on two topics.
func (w *workflow) fresh(n, drawn int) (list []joins.Timer) {
	for i := range n {
		topic := []string{tasks, steps, tasks}[(drawn+i)%3]
		list = append(list, w.planned(topic, w.id(topic), partDelays[(drawn+i)%len(partDelays)]))
	}
	return list
}

func partsOf(list []joins.Timer) (parts []wakebelltype.Part) {
	for i := range list {
		parts = append(parts, list[i].Part)
	}
	return parts
}

// schedule schedules a join with parts of its own, and some that were scheduled before.
func (w *workflow) schedule(o Op) {
	n := o.A % 5
	if o.A%10 == 9 {
		n = 40
	}
	id := "report" + strconv.Itoa(o.A%6)
	all, list := w.some(o.B%3, o.A, id), w.fresh(n, o.B)
	all = append(all, partsOf(list)...)
	j := w.planned(reports, id, joinDelays[o.B%len(joinDelays)])
	j.Name, j.Open, j.Parts = w.id("names"), o.B%4 == 1, all
	w.send("join "+id, append(list, j))
}

// chain schedules timers one after the other.
func (w *workflow) chain(o Op) {
	list := w.fresh(1, o.B)
	for i := range 2 {
		next := w.planned(steps, w.id("chain"), joinDelays[(o.A+i)%len(joinDelays)])
		next.Name, next.Parts = w.id("names"), []wakebelltype.Part{list[i].Part}
		list = append(list, next)
	}
	w.send("chain "+list[0].ID, list)
}

// further adds timers to a join that is or was open: new ones or, if there are some, old ones.
func (w *workflow) further(o Op, old bool) {
	j := w.pick(o)
	if j == nil {
		return
	}
	of := joins.Ref{Topic: j.Topic, ID: j.ID}
	if !old {
		list := w.fresh(1+o.B%3, o.B)
		for i := range list {
			list[i].Of = []wakebelltype.Part{{Topic: j.Topic, ID: j.ID}}
		}
		w.send("parts of "+j.ID, list)
		return
	}
	parts := w.some(1+o.B%3, o.B, j.ID)
	w.steps("add parts to "+j.ID, func() bool {
		if j = w.of(j.ID); of.Name != "" && of.Name != j.Name { // another one has taken its place
			return false
		}
		found, err := w.api.Add(w.sim.ctx, of, parts...)
		of = found
		w.added(j, parts, err)
		return err == nil
	}, func() bool {
		if err := w.api.Adopt(w.sim.ctx, of, parts...); err != nil {
			w.sim.broken("errors", "add parts to %s: %v", of.ID, err)
		}
		w.adopted(j, w.joins[j.ID] == j, parts)
		return true
	})
}
