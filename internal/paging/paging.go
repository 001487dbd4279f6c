// Package paging turns a call that reads one page into a sequence of all items.
package paging

import "iter"

// All yields the items of the pages that read returns. The first cursor is zero;
// the page that returns a zero cursor is the last one. An error is yielded last.
func All[T any, C comparable](read func(cursor C) (page []T, next C, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero, cursor C
		for {
			page, next, err := read(cursor)
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
			if cursor = next; cursor == zero {
				return
			}
		}
	}
}
