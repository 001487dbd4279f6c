package subscriptions

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages"
)

func TestBatchOfLeasesCountsHeaders(t *testing.T) {
	t.Parallel()
	leases := func(l *messages.Lease) []*held { return slices.Repeat([]*held{{size: sizeOf(l)}}, 1000) }
	require.Equal(t, maxLeases, batch(leases(&messages.Lease{}), maxLeaseBytes))
	require.Equal(t, 1, batch(leases(&messages.Lease{Body: make([]byte, 64<<10)}), 32<<10))
	header := &messages.Lease{Headers: map[string]string{"h": strings.Repeat("x", 10<<10)}}
	require.Equal(t, 2, batch(leases(header), 24<<10))
	require.Zero(t, batch(nil, maxLeaseBytes))
}
