package shards

import (
	"slices"
	"time"

	"github.com/wakebell/wakebell/wakebelltype"
)

// operation is a row of the table from which the model draws.
type operation struct {
	name   string
	weight int
	run    func(w *world, st step)
	calls  []string // methods of the public Client that it stands for
	all    bool     // it concerns all timers of a topic
}

// operations is all that can be done with the timers of a topic.
var operations = []operation{
	{"schedule", 8, scheduling(wakebelltype.PolicyReplace, 0), []string{"Schedule"}, false},
	{"schedule keep", 2, scheduling(wakebelltype.PolicyKeep, 0), []string{"Schedule"}, false},
	{"schedule earliest", 3, scheduling(wakebelltype.PolicyEarliest, 0), []string{"Schedule"}, false},
	{"schedule debounce", 2, scheduling(wakebelltype.PolicyDebounce, 0), []string{"Schedule"}, false},
	{"schedule once", 3, scheduling(wakebelltype.PolicyReplace, 30*24*time.Hour), []string{"Schedule"}, false},
	{"schedule many", 1, (*world).bulk, []string{"Schedule"}, true},
	{"schedule with an idempotency key", 2, (*world).scheduleKeyed, []string{"Schedule"}, false},
	{"reschedule", 4, (*world).reschedule, []string{"Reschedule"}, false},
	{"run now", 3, (*world).runNow, []string{"RunNow"}, false},
	{"cancel", 4, (*world).cancel, []string{"Cancel"}, false},
	{"cancel with an idempotency key", 2, (*world).cancelKeyed, []string{"Cancel"}, false},
	{"repeat", 2, (*world).repeat, []string{"Schedule", "Cancel"}, true},
	{"cancel all", 1, (*world).cancelAll, []string{"CancelAll"}, true},
	{"forget", 1, (*world).forget, []string{"Forget"}, true},
	{"remove topic", 1, (*world).removeTopic, []string{"RemoveTopic"}, true},
	{"redrive", 3, (*world).redrive, []string{"Redrive"}, true},
	{"delete dead", 1, (*world).deleteDead, []string{"DeleteDead"}, true},
	{"repair", 1, (*world).repair, []string{"Repair"}, true},
	{"import", 2, (*world).put, []string{"ImportTopic"}, false},
	{"retune", 5, (*world).retune, []string{"Retune"}, true},
	{"pause", 1, (*world).pause, []string{"Pause", "PauseUntil"}, true},
	{"resume", 2, (*world).resume, []string{"Resume"}, true},
	{"divide", 1, (*world).divide, []string{"Divide"}, true},
	{"reshard", 7, (*world).reshard, []string{"Reshard"}, true},
	{"reshard that dies after taking", 2, (*world).takeOnly, []string{"Reshard"}, true},
	{"reshard that dies while timers arrive", 2, (*world).arriveOnly, []string{"Reshard"}, true},
	{"move", 4, (*world).moveStep, []string{"MoveTopic"}, true},
	{"move that dies after taking", 1, (*world).moveTakeOnly, []string{"MoveTopic"}, true},
	{"abort move", 1, (*world).abortMove, []string{"AbortMove"}, true},
	{"publish in Python", 2, (*world).publish, nil, false},
	{"handle in Python", 2, (*world).commit, nil, false},
	{"claim", 10, (*world).claimSome, nil, true},
	{"settle", 8, (*world).settleSome, nil, false},
	{"handle all", 3, (*world).handleAllOf, nil, true},
	{"extend", 2, (*world).extend, nil, true},
	{"replay", 1, (*world).replay, nil, true},
	{"sweep", 3, (*world).sweep, nil, true},
	{"collect orphans", 1, (*world).orphans, nil, true},
	{"crash", 2, (*world).crashOne, nil, true},
	{"start", 2, (*world).startOne, nil, true},
	{"drain", 2, (*world).drainOne, nil, true},
	{"keep a replica", 1, (*world).keep, nil, true},
	{"failover", 1, (*world).failOver, nil, true},
	{"wait", 6, (*world).wait, nil, true},
	{"audit", 5, func(w *world, st step) { w.audit(st.site(w)) }, nil, true},
}

// named returns the operation with a name, which the table has.
func named(name string) *operation {
	i := slices.IndexFunc(operations, func(o operation) bool { return o.name == name })
	return &operations[i]
}
