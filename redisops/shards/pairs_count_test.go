package shards

import (
	"fmt"

	"github.com/wakebell/wakebell/internal/pairs"
)

// pairsOf returns which operations of a plan meet on a timer, its key, or all timers.
func pairsOf(p plan) *pairs.Run {
	r := pairs.NewRun()
	for _, st := range p.steps {
		ids := []string{st.id()}
		if st.operation.all {
			ids = modelTimers
		}
		var subjects []string
		for _, id := range ids {
			at := fmt.Sprintf("Redis %d ", st.place)
			subjects = append(subjects, at+id, at+"key "+modelKey(id))
		}
		r.Add(st.operation.name, subjects...)
	}
	return r
}

func operationNames() (names []string) {
	for i := range operations {
		names = append(names, operations[i].name)
	}
	return names
}
