package layout

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/redisops"
)

func TestCheckNames(t *testing.T) {
	t.Parallel()
	used, group, twice, empty := "used", "used", "used", ""
	names := []KeyName{{Field: "First", Value: &used}, {Field: "Group", Value: &group, NotAKey: true}}
	require.NoError(t, CheckNames("keys", names))
	err := CheckNames("keys", append(names, KeyName{Field: "Second", Value: &twice}, KeyName{Field: "Third", Value: &empty}))
	require.ErrorIs(t, err, redisops.ErrInvalid)
	require.ErrorContains(t, err, `keys: First and Second are both "used"`)
	require.ErrorContains(t, err, "keys: Third is empty")
}
