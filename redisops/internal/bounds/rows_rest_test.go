//go:build !race

package bounds

import (
	"fmt"
	"time"

	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/messages/gate"
	"github.com/wakebell/wakebell/redisops/audit"
	"github.com/wakebell/wakebell/redisops/gates"
	"github.com/wakebell/wakebell/redisops/recurring"
	"github.com/wakebell/wakebell/redisops/shards"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

var gateTerms = gate.Terms{Lease: time.Hour, Signal: time.Hour, Presence: time.Hour}

// gatesRows has gates with long queues, and a process that has many turns.
func gatesRows(b *bench) {
	ctx := b.Context()
	s, err := gates.New(b.rdb, wakebelltype.GateKeys{}, nil)
	b.must(err)
	sequence := uint64(0)
	step := func(process, name string, ops ...gate.Op) *gate.Reply {
		sequence++
		reply, err := s.Exchange(ctx, &gate.Request{Gate: name, Process: process, Sequence: sequence, Ops: ops, Terms: gateTerms})
		b.must(err)
		return reply
	}
	joins := func(n int) (ops []gate.Op) {
		for i := range n {
			ops = append(ops, gate.Op{Kind: gate.Join, Number: uint64(i)}) //nolint:gosec // small
		}
		return ops
	}
	var held []gate.Held
	for i := range b.tens / 100 {
		name := fmt.Sprint("gate ", i)
		held = append(held, gate.Held{Gate: name, Ticket: step("p", name, joins(1)...).Held})
	}
	b.measured("the heartbeat of a process with 1,000 turns", func(int) {
		_, err := s.Heartbeat(ctx, &gate.Heartbeat{Process: "p", Turns: held, Terms: gateTerms})
		b.must(err)
	})
	b.measured("the places of 1,000 tickets", func(int) { _, err := s.Places(ctx, held); b.must(err) })
	durations := map[string]gate.Holds{}
	for _, h := range held {
		durations[h.Gate] = gate.Holds{1, 2, 3}
	}
	b.measured("the durations of the turns of 1,000 gates", func(int) { b.must(s.AddHolds(ctx, durations)) })

	var tickets []gate.Op
	b.measured("join a gate with 10,000 waiters", func(round int) {
		for _, d := range step(fmt.Sprint("q", round), "g", joins(batch)...).Done {
			tickets = append(tickets, gate.Op{Kind: gate.Give, Ticket: d.Ticket})
		}
	})
	for i := range 20 {
		step(fmt.Sprint("q", i), "g", joins(batch)...)
	}
	b.measured("show a gate", func(int) { _, err := s.Show(ctx, "g"); b.must(err) })
	b.measured("give 500 tickets back", func(round int) {
		step("q0", "g", tickets[:min(batch, len(tickets))]...)
		tickets = tickets[min(batch, len(tickets)):]
		_ = round
	})
	b.measured("revoke a turn", func(int) {
		info, err := s.Show(ctx, "g")
		b.must(err)
		if info.Holder.Fence != 0 {
			b.must(s.Guard(ctx, "g", "resource", info.Holder.Fence, false))
			_, err = s.Release(ctx, "g", info.Holder.Fence, gateTerms)
			b.must(err)
		}
	})
	b.measured("repair a gate with 10,000 waiters", func(int) { _, err := s.Repair(ctx, "g", 0, gateTerms); b.must(err) })
	b.once("remove a gate with 10,000 waiters", func() { _, err := s.Remove(ctx, "g", true, gateTerms); b.must(err) })
}

// recurringRows has as many schedules as there are timers.
func recurringRows(b *bench) {
	ctx := b.Context()
	s, quiet := recurring.New(shards.New(b.store)), recurring.New(shards.New(b.unmeasured()))
	raw := func(text string, size int) recur.Raw {
		return recur.Raw{Definition: make([]byte, size), Meta: []byte("m" + text), Ours: []byte("o" + text)}
	}
	names := ids("schedule", 0, max(1000, b.many/50))
	for _, name := range names {
		b.must(quiet.Put(ctx, name, recur.Raw{}, raw("", 1000), time.Now().Unix()))
	}
	b.measured("write a schedule", func(round int) {
		b.must(s.Put(ctx, fmt.Sprint("new ", round), recur.Raw{}, raw("", 100_000), time.Now().Unix()))
	})
	b.measured("delete a schedule", func(round int) { _, err := s.Delete(ctx, fmt.Sprint("new ", round), raw("", 0).Ours); b.must(err) })
	b.measured("look at schedules, 20,000 of which are due", func(int) { _, err := s.Look(ctx, "token", time.Hour, 0, 0, 500); b.must(err) })
	firings := func(round int, of []string) (all []recurring.Firing) {
		for _, name := range of {
			found := raw(map[bool]string{true: ""}[round == 0], 1000)
			all = append(all, recurring.Firing{
				Name: name, Raw: found, Meta: []byte("m"), Ours: []byte("o"), Score: 4102444800, Topic: "runs",
				Runs: []recurring.Run{{Topic: "runs", ID: fmt.Sprint(name, "@", round), Payload: text(fullSize / 2), At: time.Unix(1700000000, 0)}},
			})
		}
		return all
	}
	b.measured("fire 500 schedules", func(round int) {
		all := firings(round, names[:batch])
		all = all[:recurring.FireBatch(all)]
		_, err := s.Fire(ctx, "token", recurring.Lock{}, all)
		b.must(err)
	})
	b.measured("fire a schedule 500 times at once", func(round int) {
		one := firings(0, names[batch+round:batch+round+1])
		run := one[0].Runs[0]
		one[0].Runs = nil
		for i := range batch {
			run.ID = fmt.Sprint(i)
			one[0].Runs = append(one[0].Runs, run)
		}
		one[0].Once = timers.NewKey("owner", fmt.Sprint("once", round), nil)
		_, err := s.Fire(ctx, "token", recurring.Lock{}, one)
		b.must(err)
	})
	b.measured("send a run", func(round int) {
		b.must(s.Send(ctx, names[0], "incarnation", recur.Put{Topic: "sent", ID: fmt.Sprint(round), Run: int64(round) + 1, Payload: text(1 << 20), At: time.Unix(1700000000, 0)}))
	})
}

// recordsRows writes counts, histories and the audit.
func recordsRows(b *bench) {
	ctx, s := b.Context(), b.store
	for i := range 1500 { // days and minutes that are kept
		b.must(b.other.HSet(ctx, s.Keys().Of("t").Counts, fmt.Sprint(i, ":h"), 1).Err())
	}
	b.measured("write counts", func(round int) {
		b.must(s.WriteCounts(ctx, "t", "node", uint64(round)+1, wakebelltype.ThroughputCounts{Handled: 5, Scheduled: 7, Started: 9})) //nolint:gosec // small
	})
	b.measured("write 100 attempts", func(int) { b.must(s.WriteHistory(ctx, "t", "node", attempts(100))) })
	log, err := audit.Open(b.rdb, wakebelltype.AuditConfig{}, nil)
	b.must(err)
	quiet, err := audit.Open(b.other, wakebelltype.AuditConfig{}, nil)
	b.must(err)
	for i := range b.tens / 10 {
		quiet.Record(ctx, wakebelltype.AuditOperation("topic.pause"), fmt.Sprint("t", i), audit.One(string(text(1000)), nil))
	}
	b.measured("record an operation", func(round int) {
		log.Record(ctx, wakebelltype.AuditOperation("topic.pause"), fmt.Sprint("u", round), audit.One(string(text(1000)), nil))
	})
}
