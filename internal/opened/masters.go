package opened

import "context"

type mastersKey struct{}

// ByMasters returns a context whose listings and statistics of queues are read from the masters,
// also with ReadFrom: what replicas answer may be older than what the caller has done before.
func ByMasters(ctx context.Context) context.Context {
	return context.WithValue(ctx, mastersKey{}, true)
}

// IsByMasters reports whether ctx is from ByMasters.
func IsByMasters(ctx context.Context) bool { return ctx.Value(mastersKey{}) != nil }
