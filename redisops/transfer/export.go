package transfer

import (
	"context"
	"io"
	"iter"
	"time"

	"github.com/wakebell/wakebell/internal/topicfile"
	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/redisops/shards"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// reportEvery is the time between two reports of the progress.
const reportEvery = 200 * time.Millisecond

// Export writes all of a topic to w, under a name, and yields its progress now and then.
func Export(ctx context.Context, s *shards.Store, topic, name string, w io.Writer) iter.Seq2[wakebelltype.Exported, error] {
	return func(yield func(wakebelltype.Exported, error) bool) {
		d, err := s.Dump(ctx, topic)
		if err != nil {
			yield(wakebelltype.Exported{}, err)
			return
		}
		e := &export{dump: d, yield: yield}
		if e.file, err = topicfile.NewWriter(w, firstLine(d, name)); err == nil {
			err = e.run(ctx)
		}
		if e.ended {
			return
		}
		p := e.progress()
		p.Done = err == nil
		yield(p, err)
	}
}

type export struct {
	dump  *shards.Dump
	file  *topicfile.Writer
	yield func(wakebelltype.Exported, error) bool

	reported time.Time
	ended    bool // by the loop over the iterator
}

func firstLine(d *shards.Dump, name string) topicfile.Topic {
	t := topicfile.Topic{
		Topic: name, At: d.Now.UTC(), Shards: d.Shards, Timers: d.Timers, Dead: d.Dead,
		Paused: d.Control.Paused, PausedUntil: d.Control.PausedUntil, PausedBy: d.Control.PausedBy, Reason: d.Control.Reason, Settings: map[string]string{},
	}
	for _, row := range tuning.All {
		if v := row.Get(&d.Control.Settings); v != 0 {
			t.Settings[row.Name] = row.Text(v)
		}
	}
	return t
}

// run writes all lines but the first.
func (e *export) run(ctx context.Context) error {
	for t, err := range e.dump.EachTimer(ctx) {
		if err == nil {
			err = e.file.Timer(timerLine(t))
		}
		if err != nil || !e.report() {
			return err
		}
	}
	for d, err := range e.dump.EachDead(ctx) {
		if err == nil {
			err = e.file.Dead(deadLine(d))
		}
		if err != nil || !e.report() {
			return err
		}
	}
	for m, err := range e.dump.EachMark(ctx) {
		if err == nil {
			err = e.file.Mark(topicfile.Mark{ID: topicfile.Text(m.ID), Keyed: m.Keyed, At: m.Due, WindowUS: m.Window.Microseconds(), Expires: m.Expires.UTC()})
		}
		if err != nil || !e.report() {
			return err
		}
	}
	if err := e.dump.End(ctx); err != nil {
		return err
	}
	return e.file.End()
}

func (e *export) progress() wakebelltype.Exported {
	if e.file == nil {
		return wakebelltype.Exported{}
	}
	n := e.file.Counts()
	return wakebelltype.Exported{Timers: n.Timers, Dead: n.Dead, Marks: n.Marks, Total: e.dump.Timers + e.dump.Dead}
}

// report yields the progress if it is time, and returns whether to go on.
func (e *export) report() bool {
	if time.Since(e.reported) < reportEvery {
		return true
	}
	e.reported = time.Now()
	e.ended = !e.yield(e.progress(), nil)
	return !e.ended
}

func timerLine(t timers.Stored) topicfile.Timer {
	line := topicfile.Timer{
		ID: topicfile.Text(t.ID), At: t.At, Key: topicfile.Text(t.Key), Number: t.Number,
		Claims: t.Claims, Failures: t.Failures, Error: topicfile.Text(t.LastError), FirstScheduled: t.FirstScheduled,
		Payload: t.Payload, Unusable: t.Fault,
	}
	if !t.Due.Equal(t.At) {
		line.Due = t.Due
	}
	return line
}

func deadLine(d timers.DeadLetter) topicfile.Dead {
	return topicfile.Dead{
		ID: topicfile.Text(d.ID), Key: topicfile.Text(d.Key), Claims: d.Claims, Failures: d.Failures, Reason: topicfile.Text(d.Reason),
		Scheduled: d.Activation, At: d.At, Payload: d.Payload,
	}
}
