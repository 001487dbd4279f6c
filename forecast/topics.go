package forecast

import (
	"time"

	"github.com/wakebell/wakebell/internal/tuning"
)

// forecast describes what was counted, and counts single minutes where that finds peaks.
func (l *load) forecast() (f Forecast, err error) {
	all := l.sorted()
	f = Forecast{From: l.from, Step: l.step(), Bars: make([]Bar, l.bars), More: l.more}
	for i := range f.Bars {
		b := &f.Bars[i]
		b.At = l.minute(i * l.perBar)
		for _, t := range all {
			b.Timers += t.timers[i]
			b.Runs += l.runsIn(t, i)
		}
		f.Total += b.Timers + b.Runs
	}
	if f.Peak, err = l.peak(all); err != nil { // before those of topics, because not all minutes may be counted
		return Forecast{}, err
	}
	for _, t := range all {
		f.Overdue += t.overdue
		if t.total() == 0 && t.overdue == 0 {
			continue
		}
		if len(f.Topics) == listedTopics {
			f.More++
			continue
		}
		described, err := l.describe(t)
		if err != nil {
			return Forecast{}, err
		}
		f.Topics = append(f.Topics, described)
	}
	f.Unread = l.unread
	return f, nil
}

// describe describes a topic: its peak, what its nodes can do, and what will wait.
func (l *load) describe(t *topicLoad) (d Topic, err error) {
	d = Topic{Name: t.name, Overdue: t.overdue, Total: t.total()}
	if d.Peak, err = l.peak([]*topicLoad{t}); err != nil {
		return d, err
	}
	if s := tuning.OfTopic(t.overview); s.RateLimit > 0 && s.RatePer > 0 {
		d.Limit = float64(s.RateLimit) * float64(time.Minute) / float64(s.RatePer)
	}
	l.best(&d)
	if d.Limit > 0 {
		if err := l.warn(t, &d, d.Limit, CauseRate); err != nil {
			return d, err
		}
	}
	if d.Best > 0 && max(d.Peak.Count, d.Overdue) > d.Best {
		err = l.warn(t, &d, float64(d.Best), CauseNodes)
	}
	return d, err
}

func (l *load) warn(t *topicLoad, d *Topic, perMinute float64, cause Cause) error {
	w, err := l.waits(t, perMinute, cause)
	if w != nil {
		d.Warnings = append(d.Warnings, *w)
	}
	return err
}

// behind is from which mean lateness on nodes are taken to do what they can.
const behind = 5 * time.Second

// best finds the most that nodes have ended in a minute of the last day.
func (l *load) best(d *Topic) {
	done, err := l.client.Throughput(l.ctx, d.Name, 24*time.Hour)
	if err != nil {
		l.unread = append(l.unread, "counts of "+d.Name+": "+err.Error())
		return
	}
	for _, p := range done.Points {
		if ended := p.Handled + p.Failed + p.Dead; ended > d.Best && done.Step > 0 {
			d.Best, d.BestAt = int64(float64(ended)*float64(time.Minute)/float64(done.Step)), p.At
			d.Behind = p.MeanLateness() >= behind
		}
	}
}
