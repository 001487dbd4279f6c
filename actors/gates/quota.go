package gates

import (
	"fmt"

	"github.com/wakebell/wakebell/actors/internal/principal"
)

// Bounds of the places and turns of remote actors: of one process, or of the
// sessions with the same credentials; of one principal; of one host; and in
// total.
const (
	maxHolderPlaces    = 1000
	MaxPrincipalPlaces = 2000
	MaxHostPlaces      = 4000
	MaxRemotePlaces    = 10_000
)

// remoteHolder is a remote process, or the sessions of a principal, whose places
// are counted. Those of this process are not: then it is nil.
type remoteHolder struct {
	principal.Party
	address string
}

// remotePlaces counts the places and turns of remote holders.
type remotePlaces struct {
	holders    map[remoteHolder]int
	principals map[principal.Party]int
	hosts      map[string]int
	all        int
}

func newRemotePlaces() remotePlaces {
	return remotePlaces{holders: map[remoteHolder]int{}, principals: map[principal.Party]int{}, hosts: map[string]int{}}
}

// full reports why a holder may have no more places; empty: it may.
func (v *remotePlaces) full(of *remoteHolder) string {
	switch {
	case of == nil:
		return ""
	case v.holders[*of] >= maxHolderPlaces:
		return fmt.Sprintf("%d places and turns already", maxHolderPlaces)
	case v.principals[of.Holder()] >= MaxPrincipalPlaces:
		return fmt.Sprintf("%d places and turns of this principal already", MaxPrincipalPlaces)
	case v.hosts[of.Host] >= MaxHostPlaces:
		return fmt.Sprintf("%d places and turns of this host already", MaxHostPlaces)
	case v.all >= MaxRemotePlaces:
		return fmt.Sprintf("%d places and turns of all processes elsewhere already", MaxRemotePlaces)
	}
	return ""
}

// add counts places that a holder gets, or returns if negative.
func (v *remotePlaces) add(of *remoteHolder, places int) {
	if of == nil {
		return
	}
	v.all += places
	count(v.holders, *of, places)
	count(v.principals, of.Holder(), places)
	count(v.hosts, of.Host, places)
}

func count[K comparable](counts map[K]int, key K, n int) {
	if counts[key] += n; counts[key] == 0 {
		delete(counts, key)
	}
}
