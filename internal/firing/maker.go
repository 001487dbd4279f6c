package firing

import (
	"context"
	"crypto/sha1" // shortens long names
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/internal/tracing"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

// The headers of every timer that a recurring schedule has fired.
const (
	HeaderSchedule = "wakebell-schedule" // the name of the schedule
	HeaderDue      = "wakebell-due"      // the instant of the run, RFC 3339
	HeaderRun      = "wakebell-run"      // the number of the run, from 1
)

var (
	errNoHash   = errors.New("its key is not a hash")
	errTooLarge = errors.New("its body is too large")
	errTopic    = errors.New("its topic has an invalid length")
	errCelery   = errors.New("the end of a Celery message is unknown, so overlap must be allowed")
	errPrefix   = errors.New("its topic does not begin with its prefix")
	errPeer     = fmt.Errorf("%w: this Celery queue is not open to peers; remote.Config.CeleryQueues (--celery-queues) names those that are", exchange.ErrForbidden)
	errSpread   = errors.New("a Celery queue would be in another slot of the Cluster")
)

// Maker creates the runs of entries.
type Maker struct {
	Store  *recurring.Store
	Prefix string // of the names and topics of this System's entries
	Limit  int    // of a payload, in bytes
	Celery bool   // runs of entries without a Wakebell topic become Celery messages

	// Tracer makes a span of each run; nil: none.
	Tracer *tracing.Tracer

	// Shares reports whether a topic is in the slot of the schedule, so that both are
	// written in one step; nil: always.
	Shares func(ctx context.Context, topic string) bool
}

// ByCelery reports whether the runs of an entry are Celery messages.
func (m Maker) ByCelery(e *recur.Entry) bool {
	return e.Ours.Celery || (m.Celery && e.Ours.Topic == "")
}

// Fires reports whether an entry is for the beats of this prefix: one that a
// System put is for its own, one of a Python process for all.
func (m Maker) Fires(o recur.Ours) bool { return !o.Put() || o.Prefix == m.Prefix }

// Owns reports whether an entry is one that a System of this prefix may see: its
// own, and those of Python processes whose name and task begin with the prefix.
// Of what cannot be read the name says it.
func (m Maker) Owns(full string, raw recur.Raw) bool {
	if !strings.HasPrefix(full, m.Prefix) {
		return false
	}
	ours, err := recur.ReadOurs(raw.Ours)
	if err != nil {
		return true
	}
	if ours.Put() || m.Prefix == "" {
		return !ours.Put() || ours.Prefix == m.Prefix
	}
	d, err := recur.ReadDefinition(raw.Definition)
	return err != nil || strings.HasPrefix(d.Task, m.Prefix)
}

func (m Maker) check(e *recur.Entry) error {
	if m.ByCelery(e) {
		_, err := celeryRun(e, time.Unix(0, 0), "x", nil)
		return err
	}
	if n := len(e.Topic()); n == 0 || n > wakebelltype.MaxName {
		return fmt.Errorf("%w: %d bytes, want 1 to %d", errTopic, n, wakebelltype.MaxName)
	}
	for _, topic := range append(outboxTopics(e), e.Topic()) {
		if !strings.HasPrefix(topic, e.Ours.Prefix) {
			return fmt.Errorf("%w: %.100q, want %.100q", errPrefix, topic, e.Ours.Prefix)
		}
	}
	_, err := m.payload(e, "x", time.Unix(0, 0), 1, nil)
	return err
}

func outboxTopics(e *recur.Entry) (all []string) {
	for _, p := range e.Ours.Outbox {
		all = append(all, p.Topic)
	}
	return all
}

// Check reports why the runs of an entry cannot be created with its settings; nil:
// they can.
func (m Maker) Check(ctx context.Context, e *recur.Entry) error {
	if err := m.check(e); err != nil {
		return err
	}
	if m.ByCelery(e) {
		if err := m.open(ctx, e); err != nil {
			return err
		}
	}
	if e.Ours.Overlap != recur.OverlapAllow && m.ByCelery(e) {
		return errCelery
	}
	return nil
}

// open refuses, for entries of a remote peer, Celery queues that are not open to
// peers, and options that only a Python beat interprets, which could redirect the
// message.
func (m Maker) open(ctx context.Context, e *recur.Entry) error {
	if !messages.Restricted(ctx) {
		return nil
	}
	if err := knownOptions(e.Definition.Options); err != nil {
		return err
	}
	o, err := readOptions(e.Definition.Options)
	if err != nil {
		return err
	}
	queue, err := o.queue()
	if err == nil && !messages.MayCelery(ctx, queue) {
		err = fmt.Errorf("%w: queue %.100q", errPeer, queue)
	}
	if err == nil && o.RoutingKey != "" && o.RoutingKey != queue {
		err = fmt.Errorf("%w: routing_key %.100q, want the queue or none", errPeer, o.RoutingKey)
	}
	return err
}

func (m Maker) shares(ctx context.Context, topic string) bool {
	return m.Shares == nil || m.Shares(ctx, topic)
}

// RunID returns the id of the timer of a run. It is the same on every beat.
func RunID(name string, due time.Time) string {
	if len(name) > recurring.MaxName || !utf8.ValidString(name) {
		sum := sha1.Sum([]byte(name))
		name = hex.EncodeToString(sum[:])
	}
	return name + "@" + stamp(due)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999999Z07:00") }

// payload returns the envelope of a run. The headers of its span must not make it too
// large, and yield to those of the entry.
func (m Maker) payload(e *recur.Entry, id string, due time.Time, run int64, span map[string]string) ([]byte, error) {
	body, contentType := e.Body()
	env := envelope.Envelope{CorrelationID: id, ContentType: contentType, Body: body}
	for _, key := range slices.Sorted(maps.Keys(span)) {
		env.Headers = append(env.Headers, envelope.Header{Key: key, Value: span[key]})
	}
	for _, key := range slices.Sorted(maps.Keys(e.Ours.Headers)) {
		env.Headers = append(env.Headers, envelope.Header{Key: key, Value: e.Ours.Headers[key]})
	}
	env.Headers = append(env.Headers,
		envelope.Header{Key: HeaderSchedule, Value: strings.TrimPrefix(e.Definition.Name, e.Ours.Prefix)},
		envelope.Header{Key: HeaderDue, Value: stamp(due)},
		envelope.Header{Key: HeaderRun, Value: strconv.FormatInt(run, 10)})
	payload, err := envelope.Encode(env)
	if err != nil {
		return nil, err
	}
	if len(payload) > m.Limit && len(span) > 0 {
		return m.payload(e, id, due, run, nil)
	}
	if len(payload) > m.Limit {
		return nil, fmt.Errorf("%w: %d bytes with its headers, the limit is %d", errTooLarge, len(payload), m.Limit)
	}
	return payload, nil
}

// destination returns what the spans of an entry's runs name as their destination: its
// topic or its Celery queue.
func (m Maker) destination(e *recur.Entry) string {
	if !m.ByCelery(e) {
		return strings.TrimPrefix(e.Topic(), m.Prefix)
	}
	o, err := readOptions(e.Definition.Options)
	if err != nil {
		return ""
	}
	queue, _ := o.queue() // celeryRun returns the error
	return queue
}

// attempt returns the attempt of a plan.
func (m Maker) attempt(ctx context.Context, it *item, p recur.Plan, now time.Time) (*attempt, error) {
	s := &attempt{item: it, after: it.entry, next: p.Next, skips: len(p.Due) == 0}
	due := p.Due
	overlap := it.entry.Ours.Overlap != recur.OverlapAllow
	switch {
	case it.passing:
		it.passing, due = false, nil
		overlap = false
	case overlap && len(due) > 1:
		due = due[len(due)-1:]
	}
	s.after.Meta.LastRunAt = p.Last
	s.firing = recurring.Firing{Name: it.name, Raw: it.raw, Due: p.Last}
	if overlap {
		s.firing.Topic, s.firing.Last = it.entry.Topic(), it.entry.Ours.Last
	}
	fires, err := m.fill(ctx, &s.firing, &s.after, due, overlap, now)
	if err != nil {
		return nil, err
	}
	s.fires = fires
	if n := len(due); n > 0 {
		s.firing.Due = due[n-1]
	}
	s.firing.Meta, s.firing.Ours, s.firing.Score = s.after.Meta.Bytes(), s.after.Ours.Bytes(), recur.Score(p.Next)
	return s, nil
}

// fill adds the runs to a firing, and counts them in the entry. now is when they are sent.
func (m Maker) fill(ctx context.Context, f *recurring.Firing, e *recur.Entry, due []time.Time, overlap bool, now time.Time) ([]Fire, error) {
	if e.Ours.ID == "" {
		e.Ours.ID = uuid.NewString()
	}
	if m.ByCelery(e) {
		if err := m.open(ctx, e); err != nil {
			return nil, err
		}
	}
	var fires []Fire
	for _, at := range due {
		if at.After(e.Ours.LastRun) {
			e.Ours.LastRun = at
		}
		e.Ours.Run++
		e.Ours.Fired++
		e.Meta.Runs++
		id := RunID(f.Name, at)
		if overlap {
			e.Ours.Last = id
		}
		fires = append(fires, Fire{Name: strings.TrimPrefix(f.Name, m.Prefix), Due: at, Run: e.Ours.Run})
		headers, span := m.Tracer.Fire(ctx, fires[len(fires)-1].Name, m.destination(e), at, e.Ours.Run, e.Ours.Trace)
		fires[len(fires)-1].span = span
		if m.ByCelery(e) {
			run, err := celeryRun(e, now, id, headers)
			if err != nil {
				return nil, err
			}
			if !m.shares(ctx, run.Queue) {
				return nil, errSpread
			}
			f.Runs = append(f.Runs, run)
			continue
		}
		topic := e.Topic()
		payload, err := m.payload(e, id, at, e.Ours.Run, headers)
		if err != nil {
			return nil, err
		}
		if !m.shares(ctx, topic) {
			e.Ours.Outbox = append(e.Ours.Outbox, recur.Put{Topic: topic, ID: id, Run: e.Ours.Run, At: at, Payload: payload})
			continue
		}
		f.Runs = append(f.Runs, recurring.Run{Topic: topic, ID: id, Payload: payload, At: at})
	}
	return fires, nil
}
