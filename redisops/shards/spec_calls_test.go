package shards

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/internal/spec"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// call makes a call. The specification refuses it until its client knows the layout and what
// moves has arrived; a call of the store waits for both by itself.
func (r *refinement) call(s spec.Step) {
	c := &r.state.Clients[s.Who]
	for first := true; first || c.Sent.Kind != spec.NoCall && s.Fault != spec.Lost; first = false {
		if first && c.Sent.Kind == spec.NoCall {
			s.Call.Number = r.state.Calls + 1
		} else if first {
			s.Call = c.Sent
		}
		for id := range r.world.IDs {
			r.apply(spec.Step{Act: spec.Arrive, ID: id})
		}
		r.apply(s)
		if r.state.Answered[s.Call.Number] == spec.Unanswered && s.Fault == spec.Lost {
			r.apply(s)
		}
	}
	r.send(s.Call)
}

// send makes a call in Redis, and compares its answer.
func (r *refinement) send(c spec.Call) {
	ctx, store := r.t.Context(), r.stores[c.Number%2]
	key := timers.NewKey("spec", strconv.Itoa(int(c.Number)), nil)
	var found spec.Found
	switch c.Kind {
	case spec.Schedule:
		b := timers.NewBatch("", 1)
		e := timers.Entry{ID: specID(c.ID), Key: r.key(), Payload: []byte(strconv.Itoa(int(c.Number))), At: time.Now().Add(time.Duration(c.Delay) * tick)}
		r.must(b.Add(modelTopic, &e))
		done, err := store.Write(ctx, key, b)
		r.must(err)
		found = map[wakebelltype.Outcome]spec.Found{
			wakebelltype.OutcomeCreated: spec.Absent, wakebelltype.OutcomeReplaced: spec.Waiting, wakebelltype.OutcomeSuperseded: spec.Running,
		}[done[0].Outcome]
	case spec.Cancel:
		presence, err := store.CancelKeyed(ctx, modelTopic, key, specID(c.ID))
		r.must(err)
		found = spec.Found(presence[0])
	case spec.RunNow:
		presence, err := store.RunNow(ctx, modelTopic, specID(c.ID))
		if errors.Is(err, wakebelltype.ErrNotFound) {
			presence, err = wakebelltype.PresenceAbsent, nil
		}
		r.must(err)
		found = spec.Found(presence)
	}
	require.Equal(r.t, r.state.Answered[c.Number], found, "%s\nthe answer of call %d", r.text(), c.Number)
}

// namesOf returns the physical topics of a place.
func namesOf(place spec.Place) []string {
	if place == spec.Old {
		return []string{modelTopic}
	}
	return sharding.Names(modelTopic, 2)
}

func (r *refinement) source(node int8, name string) *specSource {
	key := fmt.Sprint(node, " ", name)
	if r.sources[key] == nil {
		r.sources[key] = &specSource{src: r.stores[node].timers.Source(name, timers.SourceOptions{}), incarnation: rand.Text()}
	}
	return r.sources[key]
}

// poll makes a node exchange with the physical topics of a place.
func (r *refinement) poll(s spec.Step, before spec.State) {
	requests := r.sent[s.Who]
	if r.sent[s.Who] = nil; len(requests) == 0 {
		for _, name := range namesOf(s.Place) {
			to := r.source(s.Who, name)
			to.sequence++
			request := &exchange.Request{
				Incarnation: to.incarnation, Sequence: to.sequence, Want: int(r.world.IDs), LeaseTTL: time.Duration(r.world.TTL) * tick,
				Flow: exchange.Flow{PerKey: int(r.world.PerKey), MaxInFlight: int(r.world.InFlight)},
			}
			for id, v := range s.Verdicts {
				lease, ok := r.leases[before.Nodes[s.Who].Leases[id].Token]
				if ok && v != spec.Undecided && r.placeOf[lease.ID+" "+string(lease.Token)] == name {
					verdict := map[spec.Verdict]exchange.Verdict{spec.Ack: exchange.Ack, spec.Nack: exchange.Nack, spec.Reject: exchange.DeadLetter}[v]
					settle := storetest.Verdict(verdict, lease)
					settle.Delay = tick
					request.Settle = append(request.Settle, settle)
				}
			}
			requests = append(requests, specRequest{to, request})
		}
	}
	var got []string
	for _, sent := range requests {
		reply, err := sent.to.src.Exchange(r.t.Context(), sent.request)
		r.must(err)
		for _, l := range reply.Leases {
			got = append(got, l.ID)
			r.placeOf[l.ID+" "+string(l.Token)] = sent.to.src.Name()
			r.note(s.Who, l)
		}
	}
	switch s.Fault {
	case spec.Lost:
		r.sent[s.Who] = requests
		return
	case spec.Copied:
		r.late = requests
	}
	var want []string
	for id, l := range r.state.Nodes[s.Who].Leases {
		kept := before.Nodes[s.Who].Leases[id].Token == l.Token
		if l.Token > 0 && !kept {
			want = append(want, specID(int8(id)))
		}
	}
	slices.Sort(got)
	require.Equal(r.t, want, got, "%s\nthe leases of the exchange", r.text())
}

// note keeps a lease under the token that it has in the specification.
func (r *refinement) note(node int8, l exchange.Lease) {
	id := slices.IndexFunc([]int8{0, 1, 2}, func(id int8) bool { return specID(id) == l.ID })
	for place := range r.state.Places {
		if t := r.state.Places[place][id]; t.Token > 0 {
			r.leases[t.Token] = l
		}
	}
}
