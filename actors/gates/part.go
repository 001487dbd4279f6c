package gates

import "github.com/wakebell/wakebell/messages/gate"

// part is the process's state at the gates of one part of the store.
type part struct {
	number    int
	queues    map[string]*gateQueue
	floor     gate.Ticket // the highest ticket that had a turn
	heartbeat heartbeat
}

// partOf returns the part of a gate.
func (k *gatekeeper) partOf(name string) *part {
	number := k.cfg.Store.Part(name)
	p := k.parts[number]
	if p == nil {
		p = &part{number: number, queues: map[string]*gateQueue{}}
		k.parts[number] = p
	}
	return p
}
