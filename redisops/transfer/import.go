package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/internal/topicfile"
	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/redisops/shards"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	stepLines = 1000    // that are stored together
	stepBytes = 4 << 20 // of payloads
)

// Import stores what r has of a topic, and yields its progress now and then. Full returns
// the full name of a topic; limit bounds a payload, in bytes. Movable returns an error for a
// payload that cannot be stored in another topic than the exported one.
func Import(
	ctx context.Context, s *shards.Store, r io.Reader, o wakebelltype.ImportOptions, limit int,
	full func(topic string) (string, error), movable func(payload []byte) error,
) iter.Seq2[wakebelltype.Imported, error] {
	return func(yield func(wakebelltype.Imported, error) bool) {
		i := &importing{store: s, options: o, movable: movable, yield: yield}
		err := i.open(r, limit, full)
		if err == nil {
			err = i.prepare(ctx)
		}
		if err == nil {
			err = i.run(ctx)
		}
		if i.ended {
			return
		}
		i.done.Done = err == nil
		yield(i.done, err)
	}
}

type importing struct {
	store   *shards.Store
	options wakebelltype.ImportOptions
	movable func(payload []byte) error
	yield   func(wakebelltype.Imported, error) bool
	file    *topicfile.Reader
	topic   string // with the prefix

	timers []timers.Stored // of the lines that are stored next
	dead   []timers.DeadLetter
	marks  []shards.Mark
	bytes  int
	read   int64          // the last line that was read and is right
	known  shards.DeadSet // dead letters that the topic has; nil: not read yet

	done     wakebelltype.Imported
	reported time.Time
	ended    bool // by the loop over the iterator
}

// open reads the first line.
func (i *importing) open(r io.Reader, limit int, full func(topic string) (string, error)) (err error) {
	if i.options.FromLine < 0 {
		return fmt.Errorf("%w: FromLine: %d, want at least 0", wakebelltype.ErrInvalid, i.options.FromLine)
	}
	i.file, err = topicfile.NewReader(r, topicfile.Bounds{
		ID: wakebelltype.MaxName, Key: timers.MaxKey, Error: timers.MaxError, Payload: limit,
		Count: timers.MaxCount, Number: timers.MaxNumber, Shards: sharding.MaxShards, LastInstant: timers.LastInstant,
	})
	if err != nil {
		return invalid(err)
	}
	i.done.Topic = cmp.Or(i.options.Topic, i.file.Topic.Topic)
	i.read = i.file.At()
	i.done.Line, i.done.Total = i.read, i.file.Topic.Timers+i.file.Topic.Dead
	i.topic, err = full(i.done.Topic)
	return err
}

// invalid marks errors about the content of a file as those about an argument.
func invalid(err error) error { return fmt.Errorf("%w: %w", wakebelltype.ErrInvalid, err) }

// prepare gives a topic without timers the number of shards of the exported one, and a
// topic without a pause and overrides its pause and its overrides.
func (i *importing) prepare(ctx context.Context) error {
	t := i.file.Topic
	var set wakebelltype.Settings
	for _, row := range tuning.All {
		if text, ok := t.Settings[row.Name]; ok {
			if err := row.Read(&set, text); err != nil {
				return invalid(fmt.Errorf("line 1: settings: %s: %w", row.Name, err))
			}
		}
	}
	if err := tuning.Check(set); err != nil {
		return invalid(fmt.Errorf("line 1: settings: %w", err))
	}
	if i.options.DryRun {
		return nil
	}
	unused, err := i.store.Unused(ctx, i.topic)
	if err == nil && unused && t.Shards > 1 {
		_, err = i.store.Divide(ctx, i.topic, t.Shards)
	}
	if err != nil {
		return err
	}
	c, err := i.store.Control(ctx, i.topic)
	if err != nil || c.Paused || c.Settings != (wakebelltype.Settings{}) {
		return err
	}
	if t.Paused {
		c = wakebelltype.Control{PausedBy: t.PausedBy, Reason: t.Reason, PausedUntil: t.PausedUntil}
		_, err = i.store.PauseUntil(ctx, i.topic, shards.PauseOf(c))
		err = shards.WithoutEnded(c, err)
	}
	if err == nil && set != (wakebelltype.Settings{}) {
		_, err = i.store.Retune(ctx, i.topic, set)
	}
	return err
}

// run reads and stores all lines but the first. What was read before an error is stored.
func (i *importing) run(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		line, err := i.file.Next()
		if err != nil {
			failed := i.flush(ctx)
			switch {
			case errors.Is(err, io.EOF):
				return failed
			case ctx.Err() != nil:
				return errors.Join(ctx.Err(), failed)
			default:
				return errors.Join(invalid(err), failed)
			}
		}
		if i.read = i.file.At(); i.read >= i.options.FromLine {
			if err := i.checkMovable(line); err != nil {
				return err
			}
			i.add(line)
		}
		if len(i.timers)+len(i.dead)+len(i.marks) < stepLines && i.bytes < stepBytes {
			continue
		}
		if err := i.flush(ctx); err != nil || !i.report() {
			return err
		}
	}
}

// checkMovable checks the payload of a line that is stored in another topic.
func (i *importing) checkMovable(line topicfile.Line) (err error) {
	if i.done.Topic == i.file.Topic.Topic {
		return nil
	}
	switch {
	case line.Timer != nil && line.Timer.Unusable == "":
		err = i.movable(line.Timer.Payload)
	case line.Dead != nil:
		err = i.movable(line.Dead.Payload)
	}
	if err != nil {
		return invalid(fmt.Errorf("line %d: %w", i.read, err))
	}
	return nil
}

func (i *importing) add(line topicfile.Line) {
	switch {
	case line.Timer != nil && line.Timer.Unusable != "":
		i.done.Unusable++
	case line.Timer != nil:
		i.timers = append(i.timers, storedOf(line.Timer))
		i.bytes += len(line.Timer.Payload)
	case line.Dead != nil:
		d := line.Dead
		i.dead = append(i.dead, timers.DeadLetter{
			ID: string(d.ID), Key: string(d.Key), Claims: d.Claims, Failures: d.Failures, Reason: string(d.Reason),
			Activation: d.Scheduled, At: d.At, Payload: d.Payload,
		})
		i.bytes += len(d.Payload)
	case line.Mark != nil:
		m := line.Mark
		i.marks = append(i.marks, shards.Mark{ID: string(m.ID), Keyed: m.Keyed, Due: m.At, Window: time.Duration(m.WindowUS) * time.Microsecond, Expires: m.Expires})
	}
}

func storedOf(t *topicfile.Timer) timers.Stored {
	stored := timers.Stored{
		ID: string(t.ID), Key: string(t.Key), Number: t.Number, At: t.At, Never: t.At.IsZero(), Due: t.Due,
		Claims: t.Claims, Failures: t.Failures, LastError: string(t.Error), FirstScheduled: t.FirstScheduled, Payload: t.Payload,
	}
	if t.Due.IsZero() {
		stored.Due = t.At
	}
	return stored
}

// flush stores the lines that were read. It is not interrupted, so that it is known what
// was stored.
func (i *importing) flush(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	for _, store := range []func(context.Context) error{i.putTimers, i.putDead, i.putMarks} {
		if err := store(ctx); err != nil {
			return err
		}
	}
	i.timers, i.dead, i.marks, i.bytes = i.timers[:0], i.dead[:0], i.marks[:0], 0
	i.done.Line = i.read
	return nil
}

func (i *importing) putTimers(ctx context.Context) error {
	if len(i.timers) == 0 {
		return nil
	}
	mode := timers.PutKeep
	switch {
	case i.options.DryRun:
		mode = timers.PutTry
	case i.options.Replace:
		mode = timers.PutReplace
	}
	existed, err := i.store.Put(ctx, i.topic, mode, i.timers)
	for _, e := range existed {
		switch {
		case !e:
			i.done.Stored++
		case i.options.Replace:
			i.done.Replaced++
		default:
			i.done.Existed++
		}
	}
	return err
}

// putDead stores the dead letters that the topic does not have.
func (i *importing) putDead(ctx context.Context) (err error) {
	if len(i.dead) == 0 {
		return nil
	}
	if i.known == nil {
		if i.known, err = i.store.DeadSet(ctx, i.topic); err != nil {
			return err
		}
	}
	missing := slices.DeleteFunc(i.dead, i.known.Add)
	existed := int64(len(i.dead) - len(missing))
	if !i.options.DryRun {
		if err := i.store.PutDead(ctx, i.topic, missing); err != nil {
			return err
		}
	}
	i.done.Dead, i.done.Existed = i.done.Dead+int64(len(missing)), i.done.Existed+existed
	return nil
}

func (i *importing) putMarks(ctx context.Context) error {
	for _, m := range i.marks {
		stored := true
		if !i.options.DryRun {
			var err error
			if stored, err = i.store.PutMark(ctx, i.topic, m); err != nil {
				return err
			}
		}
		if stored {
			i.done.Marks++
		}
	}
	return nil
}

// report yields the progress if it is time, and returns whether to go on.
func (i *importing) report() bool {
	if time.Since(i.reported) < reportEvery {
		return true
	}
	i.reported = time.Now()
	i.ended = !i.yield(i.done, nil)
	return !i.ended
}
