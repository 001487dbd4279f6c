package queue

import (
	"context"
	"strings"

	"github.com/wakebell/wakebell/internal/queuekeys"
	"github.com/wakebell/wakebell/wakebelltype"
)

// memberSeparator separates the parts of a member of the registry. A name has no NUL.
const memberSeparator = "\x00"

// member returns the member of the registry that stands for a queue: its name alone,
// if it has the default keys.
func member(n wakebelltype.QueueKeys) string {
	if n = queuekeys.WithDefaults(n); n == queuekeys.WithDefaults(wakebelltype.QueueKeys{Name: n.Name}) {
		return n.Name
	}
	return strings.Join([]string{n.Name, n.Separator, n.DeadLetters}, memberSeparator)
}

// Registered returns the queue that a member of the registry stands for, and false for
// a member that another program has written.
func Registered(member string) (wakebelltype.QueueKeys, bool) {
	n := wakebelltype.QueueKeys{Name: member}
	if parts := strings.SplitN(member, memberSeparator, 3); len(parts) == 3 {
		n = wakebelltype.QueueKeys{Name: parts[0], Separator: parts[1], DeadLetters: parts[2]}
	}
	return n, queuekeys.Check(n) == nil
}

// remember registers the queue after it was used.
func (q *Queue) remember(ctx context.Context) { q.timers.RememberQueue(ctx, q.member) }
