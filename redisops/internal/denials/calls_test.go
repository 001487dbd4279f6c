package denials

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/redisops/queue"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// world is a topic and a queue, as a Redis user sees them.
type world struct {
	*testing.T
	*timers.Timers
	rdb   *redis.Client
	queue *queue.Queue
	topic string
}

func newWorld(t *testing.T, rdb *redis.Client, topic string) *world {
	t.Helper()
	s, err := timers.New(rdb, wakebelltype.Keys{})
	require.NoError(t, err)
	q, err := queue.New(s, wakebelltype.QueueKeys{Name: topic})
	require.NoError(t, err)
	return &world{t, s, rdb, q, topic}
}

func (w *world) must(err error) {
	w.Helper()
	require.NoError(w, err)
}

func (w *world) schedule(entries ...timers.Entry) error {
	for i := range entries {
		entries[i].Payload = []byte("x")
	}
	_, err := w.Schedule(w.Context(), w.topic, entries...)
	return err
}

// template is what is stored before a call. It is made once, and copied for each.
type template struct {
	name   string
	once   sync.Once
	leases []exchange.Lease // that are held
	dumps  map[string]string
}

var ofTimers, ofQueues = template{name: "stored-timers"}, template{name: "stored-queue"}

// copied copies what is stored, which fill makes, and returns the leases that are held.
func (w *world) copied(of *template, fill func(w *world) []exchange.Lease) []exchange.Lease {
	w.Helper()
	of.once.Do(func() {
		of.leases = fill(newWorld(w.T, w.rdb, of.name))
		of.dumps = contents(w.T, w.rdb, of.name)
	})
	pipe := w.rdb.Pipeline()
	for key, dump := range of.dumps {
		pipe.RestoreReplace(w.Context(), strings.ReplaceAll(key, of.name, w.topic), 0, dump)
	}
	_, err := pipe.Exec(w.Context())
	w.must(err)
	return of.leases
}

func (w *world) stored() []exchange.Lease { return w.copied(&ofTimers, (*world).fill) }

// fill stores timers in all states: with keys and without, leased, parked, debounced, due and
// not due, with a mark, and dead letters of both kinds.
func (w *world) fill() []exchange.Lease {
	w.Helper()
	w.must(w.schedule(timers.Entry{ID: "dead"}, timers.Entry{ID: "dead of a key", Key: "d"}))
	stream := w.stream()
	for _, l := range stream.Run(w, byKey(stream.Request(10, time.Minute))).Leases {
		r := byKey(stream.Request(0, time.Minute))
		r.Settle = append(r.Settle, storetest.Verdict(exchange.DeadLetter, l))
		stream.Run(w, r)
	}
	w.must(w.schedule(timers.Entry{ID: "held", Key: "k"}, timers.Entry{ID: "leased"}))
	leases := stream.Run(w, byKey(stream.Request(10, time.Hour))).Leases
	require.Len(w, leases, 2)
	w.must(w.schedule(timers.Entry{ID: "parked", Key: "k"}, timers.Entry{ID: "due"}, timers.Entry{ID: "due of a key", Key: "l"},
		timers.Entry{ID: "later", In: time.Hour}, timers.Entry{ID: "later of a key", Key: "m", In: time.Hour},
		timers.Entry{ID: "once", In: time.Hour, Once: time.Minute}))
	w.must(w.schedule(timers.Entry{ID: "debounced", In: time.Hour, Policy: wakebelltype.PolicyDebounce},
		timers.Entry{ID: "debounced of a key", Key: "n", In: time.Hour, Policy: wakebelltype.PolicyDebounce}))
	return leases
}

func (w *world) stream() *storetest.Stream {
	return storetest.NewStream(w.Source(w.topic, timers.SourceOptions{}))
}

func byKey(r *exchange.Request) *exchange.Request {
	r.Flow = exchange.Flow{PerKey: 1}
	return r
}

// call prepares what is stored as a user with all rights, and returns the call of another user.
type call = func(admin, user *world) func() error

// onTimers is a call that changes timers of a topic.
func onTimers(do func(w *world, leases []exchange.Lease) error) call {
	return func(admin, user *world) func() error {
		leases := admin.stored()
		return func() error { return do(user, leases) }
	}
}

// ids of all timers that stored stores.
var ids = []string{"held", "leased", "parked", "due", "due of a key", "later", "later of a key", "once", "debounced", "debounced of a key", "absent"}

// exchanging is an exchange, which settles or extends leases that the admin has claimed.
func exchanging(change func(r *exchange.Request, leases []exchange.Lease)) call {
	return onTimers(func(w *world, leases []exchange.Lease) error {
		src := w.Source(w.topic, timers.SourceOptions{})
		r := storetest.NewStream(src).Request(10, time.Minute)
		change(r, leases)
		_, err := src.Exchange(w.Context(), r)
		return err
	})
}

// timerCalls are the calls that change a topic.
func timerCalls() map[string]call {
	all := map[string]call{}
	for name, e := range map[string]timers.Entry{
		"": {In: time.Hour}, " keep": {In: time.Hour, Policy: wakebelltype.PolicyKeep}, " earliest": {In: time.Minute, Policy: wakebelltype.PolicyEarliest},
		" debounce": {In: time.Minute, Policy: wakebelltype.PolicyDebounce}, " once": {In: time.Hour, Once: time.Minute}, " of a key": {In: time.Hour, Key: "k"},
		" once of a key": {In: time.Hour, Key: "k", Once: time.Minute},
	} {
		for _, id := range []string{"new", "held", "parked", "later of a key"} {
			e.ID = id
			all["schedule "+id+name] = onTimers(func(w *world, _ []exchange.Lease) error { return w.schedule(e) })
		}
		all["schedule with an idempotency key"+name] = onTimers(func(w *world, _ []exchange.Lease) error {
			b := timers.NewBatch("", 2)
			for _, id := range []string{"new", "later"} {
				e.ID = id
				w.must(b.Add(w.topic, &e))
			}
			_, err := w.Write(w.Context(), timers.NewKey("owner", "k", nil), b)
			return err
		})
	}
	all["schedule many"] = onTimers(func(w *world, _ []exchange.Lease) error {
		many := make([]timers.Entry, 60)
		for i := range many {
			many[i] = timers.Entry{ID: fmt.Sprint(i), In: time.Hour}
		}
		return w.schedule(many...)
	})
	for _, id := range ids[:len(ids)-1] {
		all["cancel "+id] = onTimers(func(w *world, _ []exchange.Lease) error {
			_, err := w.Cancel(w.Context(), w.topic, id)
			return err
		})
		all["reschedule "+id] = onTimers(func(w *world, _ []exchange.Lease) error {
			_, err := w.Reschedule(w.Context(), w.topic, id, time.Time{}, time.Minute)
			return err
		})
		all["run now "+id] = onTimers(func(w *world, _ []exchange.Lease) error {
			_, err := w.RunNow(w.Context(), w.topic, id)
			return err
		})
	}
	addTopicCalls(all)
	addExchanges(all)
	return all
}

func addTopicCalls(all map[string]call) {
	all["cancel with an idempotency key"] = onTimers(func(w *world, _ []exchange.Lease) error {
		_, err := w.CancelKeyed(w.Context(), w.topic, timers.NewKey("owner", "k", nil), ids...)
		return err
	})
	all["cancel with an idempotency key in a shard"] = func(admin, user *world) func() error {
		admin.stored()
		k := admin.Keys().Of(admin.topic)
		admin.must(admin.RDB.Set(admin.Context(), k.Layout(), "x {}", 0).Err())
		return func() error {
			_, err := user.WithFence(&timers.Fence{Layout: "x"}).CancelKeyed(user.Context(), user.topic, timers.NewKey("owner", "k", nil), ids...)
			return err
		}
	}
	all["cancel all"] = onTimers(func(w *world, _ []exchange.Lease) error {
		_, err := w.CancelAll(w.Context(), w.topic)
		return err
	})
	for _, overwrite := range []bool{false, true} {
		for _, live := range []bool{false, true} {
			all[fmt.Sprintf("redrive, overwrite %v, live %v", overwrite, live)] = func(admin, user *world) func() error {
				admin.stored()
				if live {
					admin.must(admin.schedule(timers.Entry{ID: "dead", In: time.Hour}, timers.Entry{ID: "dead of a key", Key: "d", In: time.Hour}))
				}
				return func() error {
					_, err := user.Redrive(user.Context(), user.topic, wakebelltype.RedriveOptions{Overwrite: overwrite, Rate: 10_000})
					return err
				}
			}
		}
	}
	all["delete dead letters"] = onTimers(func(w *world, _ []exchange.Lease) error {
		_, err := w.DeleteDead(w.Context(), w.topic, wakebelltype.DeadFilter{})
		return err
	})
	for _, key := range []string{"", "k"} {
		for _, id := range []string{"new", "held", "later"} {
			all["import "+id+" key "+key] = onTimers(func(w *world, _ []exchange.Lease) error {
				at := time.Now().Add(time.Hour)
				_, err := w.Put(w.Context(), w.topic, timers.PutReplace, []timers.Stored{{ID: id, Key: key, At: at, Due: at, Number: 1}})
				return err
			})
		}
	}
	all["pause"] = onTimers(func(w *world, _ []exchange.Lease) error {
		_, err := w.Pause(w.Context(), w.topic, "operator", "")
		return err
	})
	all["retune"] = onTimers(func(w *world, _ []exchange.Lease) error {
		_, err := w.Retune(w.Context(), w.topic, wakebelltype.Settings{PerKey: 2})
		return err
	})
	all["write counts"] = onTimers(func(w *world, _ []exchange.Lease) error {
		return w.WriteCounts(w.Context(), w.topic, "node", 1, wakebelltype.ThroughputCounts{Handled: 1})
	})
	all["write history"] = onTimers(func(w *world, _ []exchange.Lease) error {
		return w.WriteHistory(w.Context(), w.topic, "node", []wakebelltype.Attempt{{ID: "a", Started: time.Now(), Outcome: wakebelltype.EventAcked}})
	})
	all["sweep"] = func(admin, user *world) func() error {
		for _, l := range admin.stored() { // of holders that are gone
			admin.must(admin.RDB.ZRem(admin.Context(), admin.Keys().Of(admin.topic).Timeline, l.ID).Err())
		}
		return func() error {
			return user.Source(user.topic, timers.SourceOptions{}).SweepKeys(user.Context(), exchange.Flow{PerKey: 1})
		}
	}
}

func addExchanges(all map[string]call) {
	for name, flow := range map[string]exchange.Flow{
		"": {}, " per key": {PerKey: 1}, " rate by key": {KeyRateLimit: 1, KeyRatePer: time.Minute, KeyRateBurst: 1},
		" fair keys":  {PerKey: 1, FairKeys: 1},
		" limits":     {RateLimit: 5, RatePer: time.Minute, RateBurst: 5, MaxInFlight: 5},
		" all limits": {RateLimit: 5, RatePer: time.Minute, RateBurst: 5, MaxInFlight: 5, PerKey: 1, KeyRateLimit: 1, KeyRatePer: time.Minute, KeyRateBurst: 1},
	} {
		all["claim"+name] = exchanging(func(r *exchange.Request, _ []exchange.Lease) { r.Flow = flow })
		verdicts := map[string]exchange.Verdict{" dead letter": exchange.DeadLetter}
		if name == " all limits" {
			verdicts = map[string]exchange.Verdict{" ack": exchange.Ack, " dead letter": exchange.DeadLetter, " nack": exchange.Nack, " release": exchange.Release}
		}
		for verdict, v := range verdicts {
			all["claim"+name+verdict] = exchanging(func(r *exchange.Request, leases []exchange.Lease) {
				r.Flow = flow
				for _, l := range leases {
					r.Settle = append(r.Settle, storetest.Verdict(v, l))
				}
			})
		}
		all["claim"+name+" extend"] = exchanging(func(r *exchange.Request, leases []exchange.Lease) {
			r.Flow = flow
			for _, l := range leases {
				r.Extend = append(r.Extend, storetest.Held(l))
			}
		})
	}
}

var ownKeys = queue.PublishOptions{OwnKeys: true}

// fillQueue stores messages with deduplication keys and without: waiting, held and dead.
func (w *world) fillQueue() []exchange.Lease {
	publish := func(name string) {
		_, _, err := w.queue.Publish(w.Context(), ownKeys, queue.NewMessage([]byte(name), ""), queue.NewMessage([]byte(name), name))
		w.must(err)
	}
	stream := storetest.NewStream(w.queue.Source(queue.SourceOptions{FreeKeys: true}))
	publish("dead")
	for _, l := range stream.Claim(w, 10).Leases {
		stream.Settle(w, storetest.Verdict(exchange.DeadLetter, l))
	}
	publish("held")
	leases := stream.Run(w, stream.Request(10, time.Hour)).Leases
	publish("waiting")
	return leases
}

// queueCalls are the calls that change a queue, which has messages with deduplication keys and without,
// a held one, and dead letters.
func queueCalls() map[string]call {
	all := map[string]call{}
	on := func(do func(w *world, leases []exchange.Lease) error) call {
		return func(admin, user *world) func() error {
			leases := admin.copied(&ofQueues, (*world).fillQueue)
			return func() error { return do(user, leases) }
		}
	}
	for _, key := range []string{"", "new", "held"} {
		for _, cap := range []int{0, 2} {
			o := ownKeys
			o.Cap, o.DropOldest = cap, cap > 0
			all[fmt.Sprintf("publish key %q cap %d", key, cap)] = on(func(w *world, _ []exchange.Lease) error {
				_, _, err := w.queue.Publish(w.Context(), o, queue.NewMessage([]byte("x"), key))
				return err
			})
		}
	}
	for _, running := range []bool{false, true} {
		all[fmt.Sprintf("purge, running %v", running)] = on(func(w *world, _ []exchange.Lease) error {
			_, err := w.queue.Purge(w.Context(), running)
			return err
		})
	}
	for verdict, v := range map[string]exchange.Verdict{"": 0, " ack": exchange.Ack, " dead letter": exchange.DeadLetter, " nack": exchange.Nack, " release": exchange.Release, " fail": exchange.Fail} {
		for name, flow := range map[string]exchange.Flow{"": {}, " limits": {RateLimit: 5, RatePer: time.Minute, RateBurst: 5, MaxInFlight: 5}} {
			all["receive"+verdict+name] = on(func(w *world, leases []exchange.Lease) error {
				src := w.queue.Source(queue.SourceOptions{FreeKeys: true, Completed: 10, Failed: 10})
				r := storetest.NewStream(src).Request(10, time.Minute)
				r.Flow = flow
				for _, l := range leases {
					if verdict != "" {
						r.Settle = append(r.Settle, storetest.Verdict(v, l))
					}
				}
				_, err := src.Exchange(w.Context(), r)
				return err
			})
		}
	}
	addLetterCalls(all, on)
	return all
}

func addLetterCalls(all map[string]call, on func(do func(w *world, leases []exchange.Lease) error) call) {
	letters := func(w *world) ([]wakebelltype.QueueDeadLetter, error) {
		found, _, err := w.queue.DeadLetters(w.Context(), "", "", 10)
		return found, err
	}
	for _, key := range []string{"", "dead"} {
		all[fmt.Sprintf("redrive of a queue, key %q", key)] = on(func(w *world, _ []exchange.Lease) error {
			found, err := letters(w)
			if err == nil {
				_, _, err = w.queue.RedriveLetter(w.Context(), found[0], key, queue.PublishOptions{OwnKeys: true})
			}
			return err
		})
	}
	all["discard dead letters of a queue"] = on(func(w *world, _ []exchange.Lease) error {
		found, err := letters(w)
		if err == nil {
			_, err = w.queue.DiscardLetters(w.Context(), found...)
		}
		return err
	})
}
