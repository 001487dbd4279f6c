package audit

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

var streamID = regexp.MustCompile(`^(\d+)-\d+$`)

// List reads a page of the entries that the filter selects, the oldest first. After is
// empty for the first page, and the next value of the previous page otherwise; next is
// empty after the last page. It examines up to 1,000 entries, so a page may be empty
// and have a next page. Filter.Last is ignored.
func (l *Log) List(ctx context.Context, f wakebelltype.AuditFilter, after string, limit int) (entries []wakebelltype.AuditEntry, next string, err error) {
	if limit <= 0 || limit > layout.MaxPage {
		limit = layout.MaxPage
	}
	from := "-"
	if !f.Since.IsZero() {
		from = strconv.FormatInt(max(f.Since.UnixMilli(), 0), 10)
	}
	if after != "" {
		if !streamID.MatchString(after) {
			return nil, "", fmt.Errorf("%w: after: %q is not a valid page cursor", wakebelltype.ErrInvalid, after)
		}
		from = "(" + after
	}
	found, err := l.page(ctx, func() *redis.XMessageSliceCmd {
		return l.RDB.XRangeN(ctx, l.cfg.Key, from, "+", layout.MaxPage)
	})
	if err != nil {
		return nil, "", err
	}
	for i, m := range found {
		entry := read(m)
		if Selects(f, entry) {
			entries = append(entries, entry)
		}
		if len(entries) == limit && i+1 < len(found) {
			return entries, m.ID, nil
		}
	}
	if len(found) == layout.MaxPage {
		next = found[len(found)-1].ID
	}
	return entries, next, nil
}

// Last returns the newest n of the entries that the filter selects, 1 to 1,000, the
// oldest of them first.
func (l *Log) Last(ctx context.Context, f wakebelltype.AuditFilter, n int) (entries []wakebelltype.AuditEntry, err error) {
	if n < 1 || n > layout.MaxPage {
		return nil, fmt.Errorf("%w: last: %d, want 1 to %d", wakebelltype.ErrInvalid, n, layout.MaxPage)
	}
	for from := "+"; ; {
		found, err := l.page(ctx, func() *redis.XMessageSliceCmd {
			return l.RDB.XRevRangeN(ctx, l.cfg.Key, from, "-", layout.MaxPage)
		})
		if err != nil {
			return nil, err
		}
		for _, m := range found {
			entry := read(m)
			older := !f.Since.IsZero() && entry.At.Before(f.Since)
			if !older && Selects(f, entry) {
				entries = append(entries, entry)
			}
			if older || len(entries) == n {
				slices.Reverse(entries)
				return entries, nil
			}
			from = "(" + m.ID
		}
		if len(found) < layout.MaxPage {
			slices.Reverse(entries)
			return entries, nil
		}
	}
}

func (l *Log) page(ctx context.Context, read func() *redis.XMessageSliceCmd) (found []redis.XMessage, err error) {
	err = l.Again(ctx, func() (err error) {
		found, err = read().Result()
		return scripts.Wrap(ctx, []string{l.cfg.Key}, err)
	})
	if err != nil {
		return nil, fmt.Errorf("list the audit in %q: %w", l.cfg.Key, err)
	}
	return found, nil
}

// Selects reports whether a filter selects an entry. It ignores Last.
func Selects(f wakebelltype.AuditFilter, e wakebelltype.AuditEntry) bool {
	return (f.Operation == "" || f.Operation == e.Operation || string(f.Operation) == e.Operation.Kind()) &&
		(f.Name == "" || f.Name == e.Name) && (f.By == "" || f.By == e.By) && !e.At.Before(f.Since)
}

// read reads an entry. A field that is missing or malformed is empty.
func read(m redis.XMessage) wakebelltype.AuditEntry {
	field := func(name string) string {
		value, _ := m.Values[name].(string)
		return value
	}
	count, _ := strconv.ParseInt(field("count"), 10, 64)
	return wakebelltype.AuditEntry{
		At: milliseconds(m.ID), Since: milliseconds(field("since")),
		Operation: wakebelltype.AuditOperation(field("operation")), Name: field("name"), Count: count,
		By: field("by"), Via: wakebelltype.AuditVia(field("via")), From: field("from"),
		Detail: field("detail"), Error: field("error"), Cursor: m.ID,
	}
}

// milliseconds reads the instant of an id or of the field since; zero: none.
func milliseconds(s string) time.Time {
	digits, _, _ := strings.Cut(s, "-")
	ms, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
