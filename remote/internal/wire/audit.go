package wire

import (
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/wakebelltype"
)

// AuditFilterMessage converts a filter of recorded operations to a message. Last is a
// field of the request.
func AuditFilterMessage(f wakebelltype.AuditFilter) *messages.AuditFilter {
	return &messages.AuditFilter{
		Operation: text.Valid(string(f.Operation)), Name: text.Valid(f.Name), By: text.Valid(f.By), Since: convert.Timestamp(f.Since),
	}
}

// AuditFilterOf is the inverse of AuditFilterMessage.
func AuditFilterOf(m *messages.AuditFilter) wakebelltype.AuditFilter {
	return wakebelltype.AuditFilter{
		Operation: wakebelltype.AuditOperation(m.GetOperation()), Name: m.GetName(), By: m.GetBy(), Since: convert.Time(m.GetSince()),
	}
}

// AuditMessage converts a recorded operation to a message.
func AuditMessage(e wakebelltype.AuditEntry) *messages.AuditEntry {
	return &messages.AuditEntry{
		At: convert.Timestamp(e.At), Since: convert.Timestamp(e.Since), Operation: text.Valid(string(e.Operation)), Name: text.Valid(e.Name), Count: e.Count,
		By: text.Valid(e.By), Via: text.Valid(string(e.Via)), From: text.Valid(e.From), Detail: text.Valid(e.Detail), Error: text.Valid(e.Error), Cursor: e.Cursor,
	}
}

// AuditOf is the inverse of AuditMessage.
func AuditOf(m *messages.AuditEntry) wakebelltype.AuditEntry {
	return wakebelltype.AuditEntry{
		At: convert.Time(m.GetAt()), Since: convert.Time(m.GetSince()), Operation: wakebelltype.AuditOperation(m.GetOperation()), Name: m.GetName(), Count: m.GetCount(),
		By: m.GetBy(), Via: wakebelltype.AuditVia(m.GetVia()), From: m.GetFrom(), Detail: m.GetDetail(), Error: m.GetError(), Cursor: m.GetCursor(),
	}
}
