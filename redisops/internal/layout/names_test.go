package layout

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/wakebelltype"
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
	require.ErrorIs(t, err, wakebelltype.ErrInvalid)
	require.ErrorContains(t, err, `keys: First and Third are both "used"`)
}

func TestNumberedNames(t *testing.T) {
	t.Parallel()
	for name, numbered := range map[string]string{
		"{gates}:state": "{gates:7}:state", "a{b}c{d}": "a{b:7}c{d}", "{shop:x}:y": "{shop:x:7}:y",
	} {
		require.Equal(t, numbered, Numbered(name, 7))
		require.Equal(t, name, Unnumbered(numbered))
		require.NotEqual(t, SlotOf(numbered), SlotOf(Numbered(name, 8)))
	}
	for _, plain := range []string{"gates", "{}:state", "{gates", "{:7}:x", "{a:b}:x"} {
		require.Equal(t, plain, Unnumbered(plain))
	}
	require.Equal(t, "gates", Numbered("gates", 7))
	require.Equal(t, "{}:state", Numbered("{}:state", 7))
}
