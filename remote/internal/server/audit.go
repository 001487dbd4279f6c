package server

import (
	"context"
	"iter"

	"google.golang.org/grpc"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/wakebelltype"
)

func (o *operations) ListAudit(m *messages.ListAuditRequest, stream grpc.ServerStreamingServer[messages.ListAuditResponse]) error {
	return listing(o, m, stream, o.listAudit)
}

func (o *operations) listAudit(ctx context.Context, m *messages.ListAuditRequest) iter.Seq2[*messages.ListAuditResponse, error] {
	page := wire.PageOf(m)
	entries := o.audited(ctx, wire.AuditFilterOf(m.GetFilter()), page.After)
	if m.GetLast() > 0 {
		entries = newest(entries, m.GetLast())
	}
	return paging.Limited(page, wire.Each(entries, func(e wakebelltype.AuditEntry) *messages.ListAuditResponse {
		return &messages.ListAuditResponse{Entry: wire.AuditMessage(e)}
	}))
}

func (o *operations) RecordChange(ctx context.Context, m *messages.RecordChangeRequest) (*messages.RecordChangeResponse, error) {
	if len(m.GetKey()) > wire.MaxKey {
		return nil, argument.Invalid("key", "%d bytes, at most %d", len(m.GetKey()), wire.MaxKey)
	}
	err := o.client().RecordChange(messages.WithOnce(ctx, m.GetKey()), wakebelltype.Change{
		Operation: wakebelltype.AuditOperation(m.GetOperation()), Name: m.GetName(), Count: m.GetCount(),
		Detail: m.GetDetail(), Error: m.GetError(),
	})
	return &messages.RecordChangeResponse{}, err
}

// audited yields the entries on gates and on what begins with the System's prefix,
// under names without it.
func (o *operations) audited(ctx context.Context, f wakebelltype.AuditFilter, after string) iter.Seq2[wakebelltype.AuditEntry, error] {
	name := f.Name
	f.Name = "" // which has the prefix
	return func(yield func(wakebelltype.AuditEntry, error) bool) {
		for e, err := range o.client().Audit(ctx, f, wakebelltype.Page{After: after}) {
			ours := true
			if err == nil && e.Operation.Kind() != "gate" {
				e.Name, ours = o.bare(e.Name)
			}
			if err == nil && (!ours || (name != "" && e.Name != name)) {
				continue
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// newest yields the last n entries.
func newest(entries iter.Seq2[wakebelltype.AuditEntry, error], n uint32) iter.Seq2[wakebelltype.AuditEntry, error] {
	return func(yield func(wakebelltype.AuditEntry, error) bool) {
		if n > paging.MaxPage {
			yield(wakebelltype.AuditEntry{}, argument.Invalid("last", "%d, want 1 to %d", n, paging.MaxPage))
			return
		}
		var last []wakebelltype.AuditEntry
		for e, err := range entries {
			if err != nil {
				yield(e, err)
				return
			}
			if last = append(last, e); len(last) > int(n) {
				last = last[1:]
			}
		}
		for _, e := range last {
			if !yield(e, nil) {
				return
			}
		}
	}
}
