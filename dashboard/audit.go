package dashboard

import (
	"context"
	"fmt"
	"slices"

	"github.com/wakebell/wakebell/wakebelltype"
)

// auditRows is how many entries the page shows: the newest that the filter selects.
const auditRows = 200

type auditData struct {
	Kinds          []string
	Kind, Name, By string
	Rows           []wakebelltype.AuditEntry
	Cut            bool
}

// auditPage shows the recorded operations of all operators, the newest first.
func (d *Dashboard) auditPage(ctx context.Context, r *request) (page, error) {
	data := auditData{Kinds: []string{"topic", "queue", "gate", "schedule"}, Kind: r.get("kind"), Name: r.get("name"), By: r.get("by")}
	filter := wakebelltype.AuditFilter{Operation: wakebelltype.AuditOperation(data.Kind), Name: data.Name, By: data.By, Last: auditRows}
	for entry, err := range d.op.Timers.Audit(ctx, filter, wakebelltype.Page{}) {
		if err != nil {
			return page{}, fmt.Errorf("read the audit: %w", err)
		}
		data.Rows = append(data.Rows, entry)
	}
	slices.Reverse(data.Rows)
	data.Cut = len(data.Rows) == auditRows
	return page{template: "audit", title: "Audit", section: "audit", data: data}, nil
}
