package messages

import (
	"context"
	"slices"
	"strings"
)

// PrincipalHeader is the header of a message that names whose it is: written by
// the guard of package remote over whatever a peer has put there. A message
// from this process has none.
const PrincipalHeader = "wakebell-principal"

// HostHeader is the header of a peer's message that names the host it came from;
// written as PrincipalHeader is.
const HostHeader = "wakebell-host"

type principalKey struct{}

// WithPrincipal is ctx with whose request it is.
func WithPrincipal(ctx context.Context, principal string) context.Context {
	return context.WithValue(ctx, principalKey{}, principal)
}

// Principal is whose request ctx is of; empty: of this process.
func Principal(ctx context.Context) string {
	p, _ := ctx.Value(principalKey{}).(string)
	return p
}

// CeleryHeader is the header of a peer's message that names the Celery queues
// which are open to peers; written as PrincipalHeader is.
const CeleryHeader = "wakebell-celery-queues"

// celerySeparator stands between the names in the header; no name has it.
const celerySeparator = "\x00"

// CeleryQueues is the value of CeleryHeader for queues.
func CeleryQueues(queues []string) string { return strings.Join(queues, celerySeparator) }

type celeryKey struct{}

// WithCelery is ctx with the Celery queues that its request may reach, as
// CeleryQueues writes them.
func WithCelery(ctx context.Context, queues string) context.Context {
	return context.WithValue(ctx, celeryKey{}, queues)
}

// Restricted reports whether ctx is of a peer's request.
func Restricted(ctx context.Context) bool {
	_, restricted := ctx.Value(celeryKey{}).(string)
	return restricted
}

// MayCelery reports whether a request may reach a Celery queue: one of this
// process any, one of a peer those that are open.
func MayCelery(ctx context.Context, queue string) bool {
	queues, restricted := ctx.Value(celeryKey{}).(string)
	return !restricted || slices.Contains(strings.Split(queues, celerySeparator), queue)
}

type onceKey struct{}

// WithOnce is ctx with a key under which what it asks for is done once; empty:
// none.
func WithOnce(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, onceKey{}, key)
}

// Once is the key of ctx; empty: none.
func Once(ctx context.Context) string {
	key, _ := ctx.Value(onceKey{}).(string)
	return key
}
