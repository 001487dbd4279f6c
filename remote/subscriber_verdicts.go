package remote

import (
	"time"

	"github.com/wakebell/wakebell/messages"
)

func (t *subscriber) addVerdict(v *messages.Verdict) {
	t.mu.Lock()
	t.verdicts = append(t.verdicts, v)
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// write sends verdicts as they gather, and asks for more time.
func (t *subscriber) write(stop <-chan struct{}) {
	look := time.NewTicker(checkEvery)
	defer look.Stop()
	for {
		select {
		case <-t.wake:
		case <-look.C:
			t.checkLeases(time.Now())
		case <-stop:
			t.flush()
			return
		}
		t.flush()
	}
}

// flush sends what has gathered. Where there is no link it stays, for the next.
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
