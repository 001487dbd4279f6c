package messages

import (
	"context"
	"slices"
	"strings"
)

// PrincipalHeader is the message header with the sender's principal. The guard of
// package remote overwrites what a peer has set. A message from this process has
// none.
const PrincipalHeader = "wakebell-principal"

// HostHeader is the header with the host that a peer's message came from; set
// like PrincipalHeader.
const HostHeader = "wakebell-host"

// CredentialHeader is the header with the kind of credentials that the principal
// presented, "token" or "certificate", empty for none; set like PrincipalHeader.
const CredentialHeader = "wakebell-credential"

// Origin says where the request of a peer comes from.
type Origin struct {
	Host       string // as in HostHeader
	Credential string // as in CredentialHeader
}

type originKey struct{}

// WithOrigin returns ctx with the origin of a peer's request.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// OriginOf returns the origin of a peer's request; false: ctx is of this process.
func OriginOf(ctx context.Context) (Origin, bool) {
	o, ok := ctx.Value(originKey{}).(Origin)
	return o, ok
}

type principalKey struct{}

// WithPrincipal returns ctx with the principal of the request.
func WithPrincipal(ctx context.Context, principal string) context.Context {
	return context.WithValue(ctx, principalKey{}, principal)
}

// Principal returns the principal of the request; empty: this process.
func Principal(ctx context.Context) string {
	p, _ := ctx.Value(principalKey{}).(string)
	return p
}

// CeleryHeader is the header with the Celery queues that peers may use; set like
// PrincipalHeader.
const CeleryHeader = "wakebell-celery-queues"

// celerySeparator separates the names in the header; no name contains it.
const celerySeparator = "\x00"

// CeleryQueues returns the value of CeleryHeader for queues.
func CeleryQueues(queues []string) string { return strings.Join(queues, celerySeparator) }

type celeryKey struct{}

// WithCelery returns ctx with the Celery queues that its request may use, encoded
// by CeleryQueues.
func WithCelery(ctx context.Context, queues string) context.Context {
	return context.WithValue(ctx, celeryKey{}, queues)
}

// Restricted reports whether ctx belongs to a peer's request.
func Restricted(ctx context.Context) bool {
	_, restricted := ctx.Value(celeryKey{}).(string)
	return restricted
}

// MayCelery reports whether a request may use a Celery queue: requests of this
// process may use any, those of a peer the permitted ones.
func MayCelery(ctx context.Context, queue string) bool {
	queues, restricted := ctx.Value(celeryKey{}).(string)
	return !restricted || slices.Contains(strings.Split(queues, celerySeparator), queue)
}

type onceKey struct{}

// WithOnce returns ctx with an idempotency key; empty: none.
func WithOnce(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, onceKey{}, key)
}

// Once returns the idempotency key of ctx; empty: none.
func Once(ctx context.Context) string {
	key, _ := ctx.Value(onceKey{}).(string)
	return key
}
