package messages

import "context"

// PrincipalHeader is the header of a message that names whose it is: written by
// the guard of package remote over whatever a peer has put there. A message
// from this process has none.
const PrincipalHeader = "wakebell-principal"

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
