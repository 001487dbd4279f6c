package timers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestBatchRefusesAnIDThatIsGivenTwice(t *testing.T) {
	t.Parallel()
	for _, room := range []int{0, 1, 1000} {
		b := NewBatch("", room)
		for i := range 1000 {
			require.NoError(t, b.Add("t", &Entry{ID: fmt.Sprint(i)}))
			require.NoError(t, b.Add("other", &Entry{ID: fmt.Sprint(i)}), "of another topic")
		}
		err := b.Add("t", &Entry{ID: "3"})
		require.ErrorIs(t, err, wakebelltype.ErrInvalid)
		require.ErrorContains(t, err, `ID: "3" is given twice`)
	}
}

func TestBatchRefusesTopics(t *testing.T) {
	t.Parallel()
	for topic, says := range map[string]string{"": "topic: empty", strings.Repeat("x", wakebelltype.MaxName): "at most 512"} {
		b := NewBatch("p:", 1)
		err := b.Add(topic, &Entry{ID: "a"})
		require.ErrorIs(t, err, wakebelltype.ErrInvalid)
		require.ErrorContains(t, err, says, "the prefix counts, and does not hide an empty name")
	}
}

// TestCallCarriesFewCostlyEntries checks that entries with a key or a mark fill a call sooner,
// within one batch and where those of several callers are sent together.
func TestCallCarriesFewCostlyEntries(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		of   Entry
		most int
	}{
		"plain": {Entry{}, layout.BatchEntries},
		"key":   {Entry{Key: "k"}, layout.CostlyEntries},
		"once":  {Entry{Once: time.Hour}, layout.CostlyEntries},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := make([]Entry, test.most+1)
			waiting := make([]*waiter, len(all))
			for i := range all {
				all[i] = test.of
				all[i].ID = fmt.Sprint(i)
				p := &part{entries: all[i : i+1]}
				_, p.load = carried(p.entries)
				waiting[i] = &waiter{part: p}
			}
			n, _ := carried(all)
			require.Equal(t, test.most, n)
			l := line{waiting: waiting}
			require.Len(t, l.take(&flight{}), test.most)
			require.Len(t, l.waiting, 1)
		})
	}
}

// TestBatchOfSeveralTopics checks that the results have the order of the timers,
// across topics and round trips.
func TestBatchOfSeveralTopics(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	const topics, each = 3, layout.BatchEntries + 1
	b := NewBatch(f.topic, 1)
	for i := range topics * each {
		e := Entry{ID: fmt.Sprint(i), In: time.Hour}
		require.NoError(t, b.Add(fmt.Sprint(i%topics), &e))
	}
	done, err := f.Write(t.Context(), nil, b)
	require.NoError(t, err)
	require.Len(t, done, topics*each)
	for i, s := range done {
		require.Equal(t, fmt.Sprint(i), s.ID)
	}
	for i := range topics {
		k := f.keys.Of(f.topic + fmt.Sprint(i))
		require.EqualValues(t, each, f.rdb.ZCard(t.Context(), k.Timeline).Val())
	}
	done, err = f.Write(t.Context(), nil, NewBatch("", 0))
	require.NoError(t, err)
	require.Empty(t, done)
}
