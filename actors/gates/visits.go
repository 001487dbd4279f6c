package gates

import (
	"fmt"

	"github.com/wakebell/wakebell/actors/internal/principal"
)

// Bounds of the places and turns of actors elsewhere: of one process, or of the
// sessions with the same credentials; of one principal; of one host; and in total.
const (
	maxVisits          = 1000
	MaxPrincipalVisits = 2000
	MaxHostVisits      = 4000
	MaxVisits          = 10_000
)

// visitor is a process elsewhere, or the sessions of a principal: its places are
// counted. Those of this process are not: then it is nil.
type visitor struct {
	principal.Party
	address string
}

// visits counts the places and turns of visitors.
type visits struct {
	visitors   map[visitor]int
	principals map[principal.Party]int
	hosts      map[string]int
	all        int
}

func newVisits() visits {
	return visits{visitors: map[visitor]int{}, principals: map[principal.Party]int{}, hosts: map[string]int{}}
}

// full reports why a visitor may have no more places; empty: it may.
func (v *visits) full(of *visitor) string {
	switch {
	case of == nil:
		return ""
	case v.visitors[*of] >= maxVisits:
		return fmt.Sprintf("%d places and turns already", maxVisits)
	case v.principals[of.Holder()] >= MaxPrincipalVisits:
		return fmt.Sprintf("%d places and turns of this principal already", MaxPrincipalVisits)
	case v.hosts[of.Host] >= MaxHostVisits:
		return fmt.Sprintf("%d places and turns of this host already", MaxHostVisits)
	case v.all >= MaxVisits:
		return fmt.Sprintf("%d places and turns of all processes elsewhere already", MaxVisits)
	}
	return ""
}

// add counts places that a visitor gets, or gives back: then it is negative.
func (v *visits) add(of *visitor, places int) {
	if of == nil {
		return
	}
	v.all += places
	count(v.visitors, *of, places)
	count(v.principals, of.Holder(), places)
	count(v.hosts, of.Host, places)
}

func count[K comparable](counts map[K]int, key K, n int) {
	if counts[key] += n; counts[key] == 0 {
		delete(counts, key)
	}
}
