package actors

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/wakebell/wakebell/internal/rarely"
	"github.com/wakebell/wakebell/messages"
)

// newLines bounds the lines of the log that messages of others cause: of one
// topic or principal, and of all of them.
func newLines() *rarely.Limiter {
	return &rarely.Limiter{Every: time.Minute, Each: 10, Total: 60}
}

// unread logs the failures of requests without a sender. Of many it logs one a
// second, with how many there were, for a Redis that is down fails them all.
type unread struct {
	log   *slog.Logger
	lines rarely.Limiter
}

func (u *unread) note(request messages.Request, fault *messages.Error) {
	u.rarely(func(skipped int) {
		u.log.Warn("a request to the gateway failed, and nobody waits for its answer",
			"request", fmt.Sprintf("%T", request), "code", fault.GetCode().String(), "err", fault.GetMessage(), "skipped", skipped)
	})
}

// rarely calls log, with how often it did not since the last time.
func (u *unread) rarely(log func(skipped int)) {
	if skipped, ok := u.lines.Allow(""); ok {
		log(skipped)
	}
}
