package paging_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/paging"
)

func TestAllReadsPagesUntilTheCursorIsZero(t *testing.T) {
	pages := map[int][]int{0: {1, 2}, 2: {}, 3: {4}}
	next := map[int]int{0: 2, 2: 3, 3: 0}
	reads := 0
	all := paging.All(func(cursor int) ([]int, int, error) {
		reads++
		return pages[cursor], next[cursor], nil
	})
	var got []int
	for item, err := range all {
		require.NoError(t, err)
		got = append(got, item)
	}
	require.Equal(t, []int{1, 2, 4}, got)
	require.Equal(t, 3, reads)
	for _, err := range all {
		require.NoError(t, err)
		break
	}
	require.Equal(t, 4, reads, "a loop that ends early reads no further page")
}

func TestAllYieldsAnErrorLast(t *testing.T) {
	broken := errors.New("broken")
	var items []int
	var errs []error
	for item, err := range paging.All(func(cursor int) ([]int, int, error) {
		if cursor == 1 {
			return nil, 0, broken
		}
		return []int{7}, 1, nil
	}) {
		items, errs = append(items, item), append(errs, err)
	}
	require.Equal(t, []int{7, 0}, items)
	require.Equal(t, []error{nil, broken}, errs)
}
