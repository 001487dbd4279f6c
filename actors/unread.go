package actors

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/wakebell/wakebell/messages"
)

// unreadEvery is how often failures that nobody waits for are logged.
const unreadEvery = time.Second

// unread logs the failures of requests without a sender. Of many it logs one a
// second, with how many there were, for a Redis that is down fails them all.
type unread struct {
	log *slog.Logger

	mu      sync.Mutex
	again   time.Time // when to log the next one
	skipped int
}

func (u *unread) note(request messages.Request, fault *messages.Error) {
	u.rarely(func(skipped int) {
		u.log.Warn("a request to the gateway failed, and nobody waits for its answer",
			"request", fmt.Sprintf("%T", request), "code", fault.GetCode().String(), "err", fault.GetMessage(), "skipped", skipped)
	})
}

// rarely calls log, with how often it did not since the last time.
func (u *unread) rarely(log func(skipped int)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	if now.Before(u.again) {
		u.skipped++
		return
	}
	log(u.skipped)
	u.again, u.skipped = now.Add(unreadEvery), 0
}
