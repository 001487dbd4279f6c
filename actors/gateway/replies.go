package gateway

import (
	"fmt"

	"github.com/wakebell/wakebell/messages"
)

// noteUnread logs the failure of a request without a sender. Of many it logs one
// a second, with the number of those skipped: a Redis that is down fails all.
func (g *gateway) logFailure(request messages.Request, fault *messages.Error) {
	if skipped, ok := g.failureLog.Allow(""); ok {
		g.env.Logger.Warn("request without a sender failed",
			"request", fmt.Sprintf("%T", request), "code", fault.GetCode().String(), "err", fault.GetMessage(), "skipped", skipped)
	}
}
