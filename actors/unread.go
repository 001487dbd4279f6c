package actors

import (
	"fmt"
	"time"

	"github.com/wakebell/wakebell/internal/rarely"
	"github.com/wakebell/wakebell/messages"
)

// NewLines bounds the lines of the log that messages of others cause: of one
// topic or principal, and of all of them.
func NewLines() *rarely.Limiter {
	return &rarely.Limiter{Every: time.Minute, Each: 10, Total: 60}
}

// noteUnread logs the failure of a request without a sender. Of many it logs one
// a second, with the number of those skipped: a Redis that is down fails all.
func (g *gateway) noteUnread(request messages.Request, fault *messages.Error) {
	if skipped, ok := g.unread.Allow(""); ok {
		g.env.Logger.Warn("request without a sender failed",
			"request", fmt.Sprintf("%T", request), "code", fault.GetCode().String(), "err", fault.GetMessage(), "skipped", skipped)
	}
}
