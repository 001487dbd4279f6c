package simulate

import "time"

// letters returns how many dead letters there are.
func (j *judge) letters() (n int) {
	for _, of := range j.dead {
		n += len(of)
	}
	return n
}

// redriven notes that the oldest dead letter of an id is a timer again.
func (j *judge) redriven(id string, overwrote bool) {
	letters := j.dead[id]
	if len(letters) == 0 || (j.current[id] != nil) != overwrote {
		j.sim.broken("answers", "%s is redriven (over a timer: %t), and that cannot be", id, overwrote)
	}
	first := letters[0]
	j.dead[id] = letters[1:]
	j.put(&version{id: id, key: first.key, payload: first.payload, due: time.Now()})
}

// skipped notes that a dead letter stays.
func (j *judge) skipped(id string) {
	if len(j.dead[id]) == 0 || j.current[id] == nil {
		j.sim.broken("answers", "the dead letter of %s is not redriven, and nothing is in its way", id)
	}
}

// deadDeleted notes that all dead letters were deleted.
func (j *judge) deadDeleted(n int) {
	if want := j.letters(); n != want {
		j.sim.broken("answers", "%d dead letters are deleted, expected %d", n, want)
	}
	clear(j.dead)
}
