// Package paging turns calls that read one page into listings.
package paging

import (
	"errors"
	"iter"
	"slices"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/wakebelltype"
)

// MaxPage is the largest limit that All passes to read.
const MaxPage = 1000

// All yields the items of the pages that read returns, the first of them after
// p.After, up to p.Limit. Read gets the limit of its page, 0 for its own; the page
// that returns an empty next is the last one. An error is yielded last.
func All[T any](p wakebelltype.Page, read func(after string, limit int) (page []T, next string, err error)) iter.Seq2[T, error] {
	return Limited(p, func(yield func(T, error) bool) {
		for after, left := p.After, p.Limit; ; {
			page, next, err := read(after, min(left, MaxPage))
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range page {
				if !yield(item, nil) {
					return
				}
			}
			if after = next; after == "" {
				return
			}
			if p.Limit > 0 {
				left -= len(page)
			}
		}
	})
}

// Limited yields the first p.Limit items, or all if it is 0. If the Limit is
// negative, it yields an error.
func Limited[T any](p wakebelltype.Page, items iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		if p.Limit < 0 {
			yield(none, argument.Invalid("limit", "%d, want at least 0", p.Limit))
			return
		}
		left := p.Limit
		for item, err := range items {
			if !yield(item, err) || err != nil {
				return
			}
			if left--; left == 0 {
				return
			}
		}
	}
}

// Scan reads a page of names; the page that returns a zero cursor is the last one.
type Scan func(cursor uint64) (names []string, next uint64, err error)

// Names yields the names of the scans that sort after the given one, in the order
// of their bytes, each once. It reads all of them first: the order of a scan
// changes with the number of names, so it cannot be continued later. After an error a
// scan goes on at its next cursor, unless that is zero. Errors are yielded last.
func Names(after string, scans ...Scan) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var found []string
		var failed error
		for _, scan := range scans {
			for cursor, more := uint64(0), true; more; more = cursor != 0 {
				names, next, err := scan(cursor)
				failed = errors.Join(failed, err)
				for _, name := range names {
					if name > after {
						found = append(found, name)
					}
				}
				cursor = next
			}
		}
		slices.Sort(found)
		for _, name := range slices.Compact(found) {
			if !yield(name, nil) {
				return
			}
		}
		if failed != nil {
			yield("", failed)
		}
	}
}
