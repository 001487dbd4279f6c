package forecast

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wakebell/wakebell/wakebelltype"
)

// load is what is due on topics, as far as it was counted.
type load struct {
	ctx    context.Context
	client Client
	from   time.Time
	perBar int // minutes
	bars   int
	left   int // minutes that may still be counted

	topics map[string]*topicLoad
	more   int // topics that are not looked at
	unread []string
}

// topicLoad is what is due on a topic.
type topicLoad struct {
	name     string
	overview wakebelltype.Overview
	overdue  int64
	timers   []int64       // by bar
	runs     map[int]int64 // of recurring schedules, by minute
	minutes  map[int][]int64
}

func (l *load) step() time.Duration { return time.Duration(l.perBar) * time.Minute }

func (l *load) end() time.Time { return l.minute(l.bars * l.perBar) }

// minute is when a minute begins.
func (l *load) minute(i int) time.Time { return l.from.Add(time.Duration(i) * time.Minute) }

// read counts the timers of topics; without names of all.
func (l *load) read(names []string) error {
	named := len(names) > 0
	if !named {
		var err error
		if names, err = l.names(); err != nil {
			return err
		}
	}
	var found []wakebelltype.Overview
	var readable []string
	for page := range slices.Chunk(names, 100) {
		some, err := l.client.Overview(l.ctx, page...)
		if err != nil {
			return err
		}
		for i := range some {
			o := some[i]
			o.Topic = page[i] // without the prefix of the client
			if o.Err != nil {
				l.unread = append(l.unread, o.Topic+": "+o.Err.Error())
				continue
			}
			if readable = append(readable, o.Topic); named || o.Stats.Total > 0 {
				found = append(found, o)
			}
		}
	}
	l.begin(readable)
	slices.SortStableFunc(found, func(a, b wakebelltype.Overview) int { return cmp.Compare(b.Stats.Total, a.Stats.Total) })
	if n := len(found) - mostTopics; n > 0 {
		found, l.more = found[:mostTopics], n
	}
	for _, o := range found {
		if err := l.count(o); err != nil {
			return err
		}
	}
	return nil
}

// begin sets from by the clock of Redis, by which timers become due: the last step of the
// counts of a topic is the present minute, also of one that does not exist. Without a topic that
// may be read nothing is counted, and the own clock does if that one is denied too.
func (l *load) begin(readable []string) {
	const tries = 3 // the counts may be denied where the timers are not
	now := time.Now()
	var lost error
	for _, topic := range append(slices.Clone(readable[:min(tries, len(readable))]), "any") {
		counts, err := l.client.Throughput(l.ctx, topic, time.Minute)
		if n := len(counts.Points); err == nil && n > 0 {
			now, lost = counts.Points[n-1].At, nil
			break
		}
		lost = cmp.Or(lost, err)
	}
	if lost != nil && len(readable) > 0 {
		l.unread = append(l.unread, "the clock of Redis: "+lost.Error())
	}
	l.from = now.Truncate(time.Minute).UTC()
}

// names are those of all topics, without the prefix of the client.
func (l *load) names() (names []string, err error) {
	prefix := ""
	if p, is := l.client.(interface{ Prefix() string }); is {
		prefix = p.Prefix()
	}
	for name, err := range l.client.Topics(l.ctx, false, wakebelltype.Page{}) {
		if err != nil {
			return nil, err
		}
		if short, ours := strings.CutPrefix(name, prefix); ours && short != "" {
			names = append(names, short)
		}
	}
	return names, nil
}

// count counts the timers of a topic by bars.
func (l *load) count(o wakebelltype.Overview) error {
	t := l.topic(o.Topic)
	t.overview = o
	epoch := time.Unix(0, 0)
	past, err := l.client.CountDue(l.ctx, o.Topic, epoch, l.from.Sub(epoch), 1)
	if err != nil {
		return err
	}
	t.overdue = past[0] + o.Stats.Parked
	t.timers, err = l.client.CountDue(l.ctx, o.Topic, l.from, l.step(), l.bars)
	return err
}

// topic returns what is known of a topic.
func (l *load) topic(name string) *topicLoad {
	t := l.topics[name]
	if t == nil {
		t = &topicLoad{name: name, timers: make([]int64, l.bars), runs: map[int]int64{}, minutes: map[int][]int64{}}
		l.topics[name] = t
	}
	return t
}

// sorted are the topics, those with the most to do first.
func (l *load) sorted() []*topicLoad {
	return slices.SortedFunc(maps.Values(l.topics), func(a, b *topicLoad) int {
		return cmp.Or(cmp.Compare(b.total(), a.total()), cmp.Compare(b.overdue, a.overdue), strings.Compare(a.name, b.name))
	})
}

// total is how much is due on a topic in all bars.
func (t *topicLoad) total() (sum int64) {
	for _, n := range t.timers {
		sum += n
	}
	for _, n := range t.runs {
		sum += n
	}
	return sum
}

// runsIn is how many runs of recurring schedules a bar has.
func (l *load) runsIn(t *topicLoad, bar int) (sum int64) {
	if len(t.runs) == 0 {
		return 0
	}
	for i := range l.perBar {
		sum += t.runs[bar*l.perBar+i]
	}
	return sum
}

// inBar is what is due in each minute of a bar. Without counting them one by one it is the
// same in each, and counted is false.
func (l *load) inBar(t *topicLoad, bar int, mayCount bool) (due []int64, counted bool, err error) {
	due, counted = t.minutes[bar], true
	switch {
	case due != nil:
	case l.perBar == 1, t.timers[bar] == 0:
		due = make([]int64, l.perBar)
		due[0] = t.timers[bar]
	case mayCount && l.left >= l.perBar:
		l.left -= l.perBar
		for len(due) < l.perBar {
			first, n := bar*l.perBar+len(due), min(mostSteps, l.perBar-len(due))
			some, err := l.client.CountDue(l.ctx, t.name, l.minute(first), time.Minute, n)
			if err != nil {
				return nil, false, err
			}
			due = append(due, some...)
		}
	default:
		due, counted = spread(t.timers[bar], l.perBar), false
	}
	if counted {
		t.minutes[bar] = due
	}
	due = slices.Clone(due)
	for i := range due {
		due[i] += t.runs[bar*l.perBar+i]
	}
	return due, counted, nil
}

// spread divides a number into n parts that differ by at most 1.
func spread(sum int64, n int) []int64 {
	parts := make([]int64, n)
	for i := range parts {
		parts[i] = sum*int64(i+1)/int64(n) - sum*int64(i)/int64(n)
	}
	return parts
}
