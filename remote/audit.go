package remote

import (
	"context"
	"iter"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/paging"
	fields "github.com/wakebell/wakebell/internal/wire"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Audit does what wakebell.Client.Audit does, for the gates of the node's Redis and
// for what begins with the node's prefix, under names without it. It needs the right
// to operate all topics. If the link breaks, it ends with wakebell.ErrUnavailable.
func (c *Client) Audit(ctx context.Context, f wakebelltype.AuditFilter, p wakebelltype.Page) iter.Seq2[wakebelltype.AuditEntry, error] {
	if f.Last < 0 {
		return func(yield func(wakebelltype.AuditEntry, error) bool) {
			yield(wakebelltype.AuditEntry{}, argument.Invalid("last", "%d, want 1 to 1000", f.Last))
		}
	}
	entries := list(ctx, c, rpc.OperationsClient.ListAudit, &messages.ListAuditRequest{
		Filter: wire.AuditFilterMessage(f), Last: fields.Count(f.Last), After: p.After, Limit: fields.Count(p.Limit),
	})
	return paging.Limited(p, wire.Each(entries, func(m *messages.ListAuditResponse) wakebelltype.AuditEntry {
		return wire.AuditOf(m.GetEntry())
	}))
}
