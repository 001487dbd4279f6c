package outbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/actors/gateway"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

// The kinds of rows.
const (
	kindSchedule = "schedule"
	kindBatch    = "batch" // timers that have to do with joins
	kindCancel   = "cancel"
	kindPublish  = "publish"
)

// maxAddressed bounds what the relay adds to a request, in bytes.
const maxAddressed = 1 << 10

// keyLife is how long Redis stores an idempotency key.
const keyLife = 24 * time.Hour

// row is a row to insert.
type row struct {
	key, stream, kind, target, timer string
	body                             []byte
}

// Schedule writes drafts of timers into the outbox, in the transaction tx. All drafts
// are checked before the first is written; an error about one names its index and wraps
// wakebell.ErrInvalid.
//
// The relay schedules them after the commit. In counts from this call, by the clock of
// this process: a timer that is relayed late is not due later. Debounce counts from the
// relay. WithReplicas has no effect.
//
// Timers with joins, and those that are their parts, are one row, which the relay sends as one
// request: up to 1,000 timers and 16 MiB. Among them only the last timer with a join keeps its
// order with rows of other calls.
func (o *Outbox) Schedule(ctx context.Context, tx Execer, drafts ...wakebell.Draft) error {
	requests := make([]*messages.ScheduleRequest, len(drafts))
	for i, d := range drafts {
		m, err := wakebell.ScheduleMessage(d)
		if err == nil {
			err = checkNames(m.GetTopic(), m.GetId())
		}
		if err != nil {
			return fmt.Errorf("timer %d: %w", i, err)
		}
		if in, ok := m.GetWhen().(*messages.ScheduleRequest_In); ok {
			m.When = &messages.ScheduleRequest_At{At: timestamppb.New(o.now().Add(in.In.AsDuration()))}
		}
		m.Trace, requests[i] = o.tracer.Inject(ctx), m
	}
	together := joined(requests)
	rows := make([]row, 0, len(drafts))
	batch := &messages.ScheduleBatchRequest{Trace: o.tracer.Inject(ctx)}
	var last *messages.ScheduleRequest
	for i, m := range requests {
		r, err := o.row(kindSchedule, m.GetTopic(), m.GetId(), m)
		if err != nil {
			return fmt.Errorf("timer %d: %w", i, err)
		}
		if !together[i] {
			rows = append(rows, r)
			continue
		}
		m.Trace = nil // that of the batch
		batch.Timers = append(batch.Timers, m)
		if last == nil || m.GetJoinName() != "" {
			last = m
		}
	}
	if n := len(batch.GetTimers()); n > gateway.MaxBatch {
		return argument.Invalid("timers", "%d with joins or as their parts in a call, at most %d; add others with PartOf to one with AfterOpen", n, gateway.MaxBatch)
	}
	if last != nil {
		r, err := o.limited(gateway.MaxRequestBytes-maxAddressed, kindBatch, last.GetTopic(), last.GetId(), batch)
		if err != nil {
			return fmt.Errorf("timers with joins: %w", err)
		}
		rows = append(rows, r)
	}
	return o.insert(ctx, tx, rows)
}

// joined reports which requests have to do with joins: their timers have one, or are parts of
// one, also of one in the same call. If they were sent one by one, parts might end before there
// is the join that waits for them.
func joined(requests []*messages.ScheduleRequest) []bool {
	type name struct{ topic, id string }
	parts := map[name]bool{}
	for _, m := range requests {
		for _, p := range m.GetAfter() {
			parts[name{p.GetTopic(), p.GetId()}] = true
		}
	}
	together := make([]bool, len(requests))
	for i, m := range requests {
		together[i] = m.GetJoinName() != "" || len(m.GetPartOf()) > 0 || parts[name{m.GetTopic(), m.GetId()}]
	}
	return together
}

// Cancel writes the cancelling of timers of a topic into the outbox, in the transaction
// tx. The relay cancels them after it has scheduled what was written before, except timers with
// joins and their parts: see Schedule. A Cancel that is relayed before these has no effect.
func (o *Outbox) Cancel(ctx context.Context, tx Execer, topic string, ids ...string) error {
	rows := make([]row, len(ids))
	for i, id := range ids {
		err := checkNames(topic, id)
		if err == nil {
			rows[i], err = o.row(kindCancel, topic, id, &messages.CancelRequest{Topic: topic, Ids: []string{id}})
		}
		if err != nil {
			return fmt.Errorf("timer %d: %w", i, err)
		}
	}
	return o.insert(ctx, tx, rows)
}

// Publish writes messages for queues into the outbox, in the transaction tx. The relay
// publishes those of one queue in their order.
//
// A message without a deduplication key gets one of its own, which Redis stores for 24
// hours. A message with a key is protected against being published twice for the
// queue's DeduplicationWindow. When a queue with a PendingCap is full, its messages
// wait in the outbox, unless it drops the oldest.
func (o *Outbox) Publish(ctx context.Context, tx Execer, drafts ...queue.Draft) error {
	rows := make([]row, len(drafts))
	for i, d := range drafts {
		m, _, err := convert.PublishMessage(d)
		if err == nil {
			err = checkNames(m.GetName(), "-")
		}
		if err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		if d.Key == "" {
			m.GetMessages()[0].Key = "outbox:" + newKey()
			m.Window, m.FreesKeys = durationpb.New(keyLife), false
		}
		m.Trace = o.tracer.Inject(ctx)
		if rows[i], err = o.row(kindPublish, m.GetName(), "", m); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
	}
	return o.insert(ctx, tx, rows)
}

func newKey() string {
	id := uuid.New()
	return hex.EncodeToString(id[:])
}

func checkNames(target, id string) error {
	for _, n := range []struct{ field, name string }{{"name", target}, {"id", id}} {
		switch {
		case n.name == "":
			return argument.Invalid(n.field, "empty")
		case len(n.name) > wakebelltype.MaxName:
			return argument.Invalid(n.field, "%d bytes, at most %d", len(n.name), wakebelltype.MaxName)
		}
	}
	return nil
}

func (o *Outbox) row(kind, target, timer string, m proto.Message) (row, error) {
	return o.limited(min(o.limit, gateway.MaxRequestBytes-maxAddressed), kind, target, timer, m)
}

func (o *Outbox) limited(limit int, kind, target, timer string, m proto.Message) (row, error) {
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return row{}, argument.Invalid("request", "%v", err)
	}
	if len(body) > limit {
		return row{}, argument.Invalid("body", "%d bytes with its headers, the limit is %d", len(body), limit)
	}
	order := "timer\x00" + target + "\x00" + timer
	if kind == kindPublish {
		order = "queue\x00" + target
	}
	sum := sha256.Sum256([]byte(order))
	return row{
		key: newKey(), stream: hex.EncodeToString(sum[:16]), kind: kind, target: legible(target), timer: legible(timer), body: body,
	}, nil
}

// legible returns a name for a column that people read: databases refuse a NUL.
func legible(name string) string { return strings.ReplaceAll(name, "\x00", "\ufffd") }

const (
	// The bounds of one INSERT.
	maxInsertRows  = 100
	maxInsertBytes = 1 << 20

	insertInto = "INSERT INTO {table} (request_key, stream, kind, target, timer, body, created_at) VALUES "
)

func (o *Outbox) insert(ctx context.Context, tx Execer, rows []row) error {
	if tx == nil {
		return argument.Invalid("tx", "nil")
	}
	for from := 0; from < len(rows); {
		to, size := from, 0
		for to < len(rows) && to-from < maxInsertRows && (to == from || size+len(rows[to].body) <= maxInsertBytes) {
			size += len(rows[to].body)
			to++
		}
		if err := o.insertPart(ctx, tx, rows[from:to]); err != nil {
			return fmt.Errorf("insert into %s: %w", o.table, err)
		}
		from = to
	}
	return nil
}

func (o *Outbox) insertPart(ctx context.Context, tx Execer, rows []row) error {
	names := make([]string, 0, 2*len(rows))
	for _, r := range rows {
		names = append(names, r.target, r.timer)
	}
	in := o.dialect.lettersOf(names...)
	columns := "(?, ?, ?, " + in.value + ", " + in.value + ", ?, ?)"
	now := micros(o.now())
	args := make([]any, 0, 9*len(rows))
	for _, r := range rows {
		args = append(args, r.key, r.stream, r.kind)
		args = append(append(args, in.args(r.target)...), in.args(r.timer)...)
		args = append(args, r.body, now)
	}
	text := insertInto + columns + strings.Repeat(", "+columns, len(rows)-1)
	if o.notify { // in the same round trip; PostgreSQL sends it at the commit, once
		text = "WITH added AS (" + text + ") SELECT pg_notify('{channel}', '')"
	}
	_, err := tx.ExecContext(ctx, o.sql(text), args...)
	return err
}
