package gates

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/principal"
)

func at(who, where, address string) *remoteHolder {
	return &remoteHolder{principal.Party{Principal: who, Host: where}, address}
}

func TestPlacesAreBoundedPerProcessPrincipalHostAndInTotal(t *testing.T) {
	t.Parallel()
	v := newRemotePlaces()
	fill := func(of *remoteHolder) {
		for v.full(of) == "" {
			v.add(of, 1)
		}
	}
	require.Empty(t, v.full(nil), "this process has no bound")
	first, second := at("mallory", "h", "h:1"), at("mallory", "h", "h:2")
	fill(first)
	require.Equal(t, maxHolderPlaces, v.all)
	fill(second)
	require.Equal(t, MaxPrincipalPlaces, v.all)
	require.Contains(t, v.full(at("mallory", "i", "i:1")), "of this principal")
	fill(at("eve", "h", "h:3"))
	fill(at("eve", "h", "h:4"))
	require.Equal(t, MaxHostPlaces, v.all)
	require.Contains(t, v.full(at("honest", "h", "h:5")), "of this host")
	require.Empty(t, v.full(at("honest", "i", "i:1")))
	for _, where := range []string{"i", "j", "k", "l", "m", "n"} {
		fill(at("of "+where, where, where))
	}
	require.Equal(t, MaxRemotePlaces, v.all)
	require.Contains(t, v.full(at("late", "o", "o:1")), "of all processes")

	v.add(first, -maxHolderPlaces)
	require.Empty(t, v.full(first))
	require.NotContains(t, v.holders, *first, "holders without places use no memory")
}
