package simulate

import (
	"errors"
	"fmt"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// hundreds returns the ids and keys of hundreds of timers; none: there are too many already. Those
// of two operations are the same ones now and then.
func (c *client) hundreds(o Op) (names, keys []string) {
	n := 100 + o.B*3
	if c.sim.judge.pending()+n > most {
		return nil, nil
	}
	set := o.A % 20
	of := []int{1, 4, 97}[set%3] // so many keys, the same ones for the same ids
	for i := range n {
		key := ""
		if of > 1 && i%5 > 0 {
			key = fmt.Sprint("many ", i%of)
		}
		names, keys = append(names, fmt.Sprintf("m%d %d", set, i)), append(keys, key)
	}
	return names, keys
}

// instant returns the instant of one of many timers: within 5 s, some have passed.
func instant(i, drawn int) time.Time {
	return time.Now().Add(time.Duration((i*(7+drawn))%61-10) * 100 * time.Millisecond).Truncate(time.Microsecond)
}

// scheduleHundreds schedules hundreds of timers in a call.
func (c *client) scheduleHundreds(o Op) {
	names, keys := c.hundreds(o)
	all := make([]timers.Entry, len(names))
	for i := range all {
		all[i] = timers.Entry{ID: names[i], Key: keys[i], Payload: c.sim.judge.payload(), At: instant(i, o.B)}
	}
	if len(all) > 0 {
		c.write(all)
	}
}

// page is how many timers an import stores at once.
const page = 200

// putHundreds stores hundreds of timers as an import does, in the place of those that are there.
func (c *client) putHundreds(o Op) {
	s := c.sim
	names, keys := c.hundreds(o)
	for i := 0; i < len(names); i += page {
		var all []timers.Stored
		for at := i; at < min(i+page, len(names)); at++ {
			due := instant(at, o.B)
			all = append(all, timers.Stored{ID: names[at], Key: keys[at], At: due, Due: due, Payload: s.judge.payload(), Number: int64(s.judge.payloads)})
		}
		existed, err := c.store.Put(s.ctx, topic, timers.PutReplace, all)
		if errors.Is(err, wakebelltype.ErrInvalid) && s.clients[0].resharding() {
			return
		}
		if err != nil {
			s.broken("errors", "import: %v", err)
		}
		for at := range all {
			if known := s.judge.current[all[at].ID] != nil; known != existed[at] {
				s.broken("answers", "the import says %v of whether %s existed", existed[at], all[at].ID)
			}
			s.judge.replaced(all[at].ID, all[at].Key, string(all[at].Payload), all[at].Due)
			s.result.Scheduled++
		}
		c.hint(exchange.Hint{Kind: exchange.HintDue, Sent: time.Now()})
	}
}
