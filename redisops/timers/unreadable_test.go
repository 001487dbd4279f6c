package timers

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// TestUnreadableAnswersOfExchanges checks that an unreadable stored answer of an
// exchange counts as none.
func TestUnreadableAnswersOfExchanges(t *testing.T) {
	t.Parallel()
	for _, text := range append(storetest.NoIntegers, "", "1", "1\n", "1 x", "1\n1 0 0 0 9\n", "1\n1 0 0 0 2\nxyz", "1 1 0 0 0 0\nxyz") {
		t.Run(fmt.Sprintf("%q", text), func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, f *fixture) {
				f.due(t, "a")
				r := f.Request(1, time.Minute)
				k := f.key
				require.NoError(t, f.rdb.Set(t.Context(), k.Stream(r.Incarnation, r.Stream), storetest.WithSequence(text, r.Sequence), 0).Err())
				require.Equal(t, []string{"a"}, storetest.IDs(f.Run(t, r).Leases))
			})
		})
	}
}
