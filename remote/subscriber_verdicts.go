package remote

import (
	"time"

	"github.com/wakebell/wakebell/messages"
)

// addVerdict queues a verdict for the next write.
func (t *subscriber) addVerdict(v *messages.Verdict) {
	t.mu.Lock()
	t.verdicts = append(t.verdicts, v)
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// write sends queued verdicts and extends leases until stop is closed.
func (t *subscriber) write(stop <-chan struct{}) {
	check := time.NewTicker(checkEvery)
	defer check.Stop()
	for {
		select {
		case <-t.wake:
		case <-check.C:
			t.checkLeases(time.Now())
		case <-stop:
			t.flush()
			return
		}
		t.flush()
	}
}

// flush sends the queued verdicts. If there is no link, they stay queued.
func (t *subscriber) flush() {
	t.mu.Lock()
	all := t.verdicts
	t.verdicts = nil
	t.mu.Unlock()
	for first := 0; first < len(all); first += maxFrame {
		part := all[first:min(first+maxFrame, len(all))]
		if !t.send(part) {
			t.mu.Lock()
			t.verdicts = append(all[first:], t.verdicts...)
			t.mu.Unlock()
			return
		}
	}
}
