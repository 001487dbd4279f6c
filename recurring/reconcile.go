package recurring

import (
	"context"
	"slices"

	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/redisops/audit"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Reconcile stores the schedules of a service, as Put does, and deletes those
// that an earlier Reconcile of the same owner and prefix stored and that are
// missing from the list. It returns the names of the deleted schedules. A
// schedule that was stored again by Put, or by another owner, stays.
//
// The owner names the service: 1 to 128 bytes, the same on all of its nodes and
// after a restart. After an error the same call may be made again. Errors:
// wakebell.ErrInvalid, or those of Put and Delete.
func (s *Schedules) Reconcile(ctx context.Context, owner string, schedules ...Schedule) (deleted []string, err error) {
	if err := validateOwner(owner); err != nil {
		return nil, err
	}
	if err := validateAll(schedules, s.manual.Zone); err != nil {
		return nil, err
	}
	names, owned := make([]string, len(schedules)), slices.Clone(schedules)
	for i, s := range schedules {
		owned[i].owner, names[i] = owner, s.Name
	}
	prefix := s.manual.Maker.Prefix
	before, err := s.store.Statics(ctx, prefix, owner)
	if err != nil {
		return nil, err
	}
	if err := s.store.AddStatics(ctx, prefix, owner, names...); err != nil {
		return nil, err
	}
	// A node puts the same schedules at each start; that is no operator's doing.
	if err := s.Put(audit.Skip(ctx), owned...); err != nil {
		return nil, err
	}
	missing := slices.DeleteFunc(before, func(name string) bool { return slices.Contains(names, name) })
	for _, name := range missing {
		found, err := s.remove(ctx, name, func(o recur.Ours) bool { return o.Owner == owner })
		if err != nil {
			return deleted, err
		}
		if found {
			deleted = append(deleted, name)
			s.record(ctx, wakebelltype.AuditScheduleDelete, name, audit.One(audit.Details("reconciled by", owner), nil))
		}
	}
	return deleted, s.store.DropStatics(ctx, prefix, owner, missing...)
}
