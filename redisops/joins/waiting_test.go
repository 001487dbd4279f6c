package joins

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/wakebelltype"
)

// A join waits for a topic as long as its timer is there, or a part of it there has not ended.
func TestWaitingJoins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	here := w.part("x", false).Topic
	waiting := func(topic string) []Ref {
		t.Helper()
		found, err := w.Waiting(t.Context(), topic, 3)
		require.NoError(t, err)
		return found
	}
	require.Empty(t, waiting(here), "there is no join at all")

	parts := make([]wakebelltype.Part, 1500)
	for i := range parts {
		parts[i] = wakebelltype.Part{Topic: here + "-other", ID: fmt.Sprint(i)}
	}
	last := w.part("last", true) // in the second page
	w.create(append(parts, last)...)
	bare := Ref{Topic: w.of.Topic, ID: w.of.ID}
	require.Equal(t, []Ref{bare}, waiting(here))
	require.Equal(t, []Ref{bare}, waiting(here+"-other"))
	require.Equal(t, []Ref{bare}, waiting(w.of.Topic))
	require.Empty(t, waiting(here+"-third"))

	require.NoError(t, w.Note(t.Context(), w.of, End{Part: last, End: wakebelltype.EndDone}))
	require.Empty(t, waiting(here), "the part has ended")
	require.Equal(t, []Ref{bare}, waiting(w.of.Topic))

	_, err := w.topics.Cancel(t.Context(), w.of.Topic, w.of.ID)
	require.NoError(t, err)
	require.Empty(t, waiting(w.of.Topic), "its timer is gone")
	require.Empty(t, waiting(here+"-other"))
}
