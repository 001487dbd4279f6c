package layout

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/redisops"
)

func TestComplete(t *testing.T) {
	t.Parallel()
	used, group, twice, empty := "used", "used", "used", ""
	names := []KeyName{
		{Field: "First", Value: &used},
		{Field: "Group", Value: &group, NotAKey: true},
		{Field: "Second", Value: &empty, Preset: "default"},
	}
	require.NoError(t, Complete("keys", names))
	require.Equal(t, "default", empty)
	err := Complete("keys", append(names, KeyName{Field: "Third", Value: &twice}))
	require.ErrorIs(t, err, redisops.ErrInvalid)
	require.ErrorContains(t, err, `keys: First and Third are both "used"`)
}
