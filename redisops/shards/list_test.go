package shards

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/require"
)

// A shard whose page ended early, because it examined as much as it may, says nothing about
// what comes after the end.
func TestMergedPagesEndAtTheFirstEnd(t *testing.T) {
	t.Parallel()
	of := func(end int, items ...int) page[int, int] {
		return page[int, int]{items: items, at: items, end: end, more: end > 0}
	}
	for name, c := range map[string]struct {
		pages []page[int, int]
		want  page[int, int]
	}{
		"the end of all":             {[]page[int, int]{of(0, 1, 4), of(0, 2, 3)}, of(0, 1, 2, 3, 4)},
		"one ends early":             {[]page[int, int]{of(3, 1, 3), of(0, 2, 4, 5)}, of(3, 1, 2, 3)},
		"one ends early and empty":   {[]page[int, int]{of(3), of(9, 2, 4, 5)}, of(3, 2)},
		"all are empty and go on":    {[]page[int, int]{of(7), of(5)}, of(5)},
		"more than a page":           {[]page[int, int]{of(0, 1, 3, 5), of(0, 2, 4, 6)}, of(4, 1, 2, 3, 4)},
		"more than a page, and ends": {[]page[int, int]{of(9, 1, 3, 5), of(8, 2, 4, 6)}, of(4, 1, 2, 3, 4)},
		"nothing":                    {[]page[int, int]{of(0), of(0)}, of(0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := merge(c.pages, cmp.Compare[int], 4)
			require.Equal(t, c.want.items, got.items)
			require.Equal(t, c.want.more, got.more)
			if got.more {
				require.Equal(t, c.want.end, got.end)
			}
		})
	}
}
