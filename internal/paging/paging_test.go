package paging_test

import (
	"errors"
	"iter"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/wakebelltype"
)

func collect[T any](t *testing.T, items iter.Seq2[T, error]) (all []T) {
	t.Helper()
	for item, err := range items {
		require.NoError(t, err)
		all = append(all, item)
	}
	return all
}

// numbers reads pages of two of the numbers 0 to 4, and records the limits.
func numbers(limits *[]int) func(string, int) ([]int, string, error) {
	return func(after string, limit int) (page []int, next string, err error) {
		*limits = append(*limits, limit)
		from, _ := strconv.Atoi(after)
		for i := from; i < min(from+2, 5) && (limit == 0 || len(page) < limit); i++ {
			page = append(page, i)
		}
		if to := from + len(page); to < 5 {
			next = strconv.Itoa(to)
		}
		return page, next, nil
	}
}

func TestAllReadsPagesUntilNextIsEmpty(t *testing.T) {
	var limits []int
	all := paging.All(wakebelltype.Page{}, numbers(&limits))
	require.Equal(t, []int{0, 1, 2, 3, 4}, collect(t, all))
	require.Len(t, limits, 3)
	for _, err := range all {
		require.NoError(t, err)
		break
	}
	require.Len(t, limits, 4, "a loop that ends early reads no further page")
}

func TestAllReadsNoMoreThanItsLimit(t *testing.T) {
	var limits []int
	require.Equal(t, []int{1, 2, 3}, collect(t, paging.All(wakebelltype.Page{After: "1", Limit: 3}, numbers(&limits))))
	require.Equal(t, []int{3, 1}, limits)
	limits = nil
	require.Len(t, collect(t, paging.All(wakebelltype.Page{Limit: 5000}, numbers(&limits))), 5)
	require.Equal(t, []int{1000, 1000, 1000}, limits, "a page has a limit of its own")
}

func TestAllYieldsErrorLast(t *testing.T) {
	broken := errors.New("broken")
	var items []int
	var errs []error
	for item, err := range paging.All(wakebelltype.Page{}, func(after string, _ int) ([]int, string, error) {
		if after == "1" {
			return nil, "", broken
		}
		return []int{7}, "1", nil
	}) {
		items, errs = append(items, item), append(errs, err)
	}
	require.Equal(t, []int{7, 0}, items)
	require.Equal(t, []error{nil, broken}, errs)
}

func TestNegativeLimitIsInvalid(t *testing.T) {
	for _, err := range paging.All(wakebelltype.Page{Limit: -1}, func(string, int) ([]int, string, error) {
		t.Error("it reads nothing")
		return nil, "", nil
	}) {
		require.ErrorIs(t, err, wakebelltype.ErrInvalid)
	}
}

func TestNamesAreSortedAndEachIsYieldedOnce(t *testing.T) {
	scan := func(pages ...[]string) paging.Scan {
		return func(cursor uint64) ([]string, uint64, error) {
			return pages[cursor], (cursor + 1) % uint64(len(pages)), nil
		}
	}
	one, two := scan([]string{"d", "b"}, nil, []string{"a", "d"}), scan([]string{"c", "a"})
	require.Equal(t, []string{"a", "b", "c", "d"}, collect(t, paging.Names("", one, two)))
	require.Equal(t, []string{"c", "d"}, collect(t, paging.Names("bb", one, two)))
}

func TestNamesThatCouldBeReadComeBeforeErrors(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	var names []string
	var last error
	for name, err := range paging.Names("",
		func(cursor uint64) ([]string, uint64, error) {
			if cursor == 0 {
				return nil, 7, first // and continues
			}
			return []string{"b"}, 0, nil
		},
		func(uint64) ([]string, uint64, error) { return []string{"a"}, 0, second },
	) {
		names, last = append(names, name), err
	}
	require.Equal(t, []string{"a", "b", ""}, names)
	require.ErrorIs(t, last, first)
	require.ErrorIs(t, last, second)
}
