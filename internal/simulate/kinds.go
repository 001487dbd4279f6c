package simulate

import (
	"time"

	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// kind is a kind of operation. Its weight says how often it is drawn.
type kind struct {
	name   string
	weight int
	drawn  drawn
	do     func(s *sim, o Op)
	calls  []string // methods of the public Client that it stands for
	of     of
}

// of is what a kind concerns: the timer that an operation names, or all timers.
type of bool

const (
	ofOne of = false
	ofAll of = true
)

// drawn says in which plans, and where in them, a kind is drawn.
type drawn int

const (
	sometimes drawn = iota // in about half of the plans
	always
	faulty // sometimes, and not when nothing goes wrong
)

// kinds are all operations: those of users and operators, and what happens to processes.
var kinds []kind

func init() { // in a function, because operations name their kinds
	kinds = []kind{
		{"schedule", 8, always, func(s *sim, o Op) { s.client(o).schedule(o, timers.Entry{}) }, []string{"Schedule"}, ofOne},
		{"schedule with keep", 1, sometimes, func(s *sim, o Op) { s.client(o).schedule(o, timers.Entry{Policy: wakebelltype.PolicyKeep}) }, []string{"Schedule"}, ofOne},
		{"schedule with earliest", 1, sometimes, func(s *sim, o Op) { s.client(o).schedule(o, timers.Entry{Policy: wakebelltype.PolicyEarliest}) }, []string{"Schedule"}, ofOne},
		{"debounce", 2, sometimes, func(s *sim, o Op) { s.client(o).debounce(o) }, []string{"Schedule"}, ofOne},
		{"schedule once", 2, sometimes, func(s *sim, o Op) { s.client(o).schedule(o, timers.Entry{Once: windows[o.B%len(windows)]}) }, []string{"Schedule"}, ofOne},
		{"schedule without its key", 1, sometimes, func(s *sim, o Op) { s.client(o).scheduleWithoutKey(o) }, []string{"Schedule"}, ofOne},
		{"schedule a hundred", 1, sometimes, func(s *sim, o Op) { s.client(o).scheduleHundred(o) }, []string{"Schedule"}, ofAll},
		{"schedule many", 1, sometimes, func(s *sim, o Op) { s.client(o).scheduleMany(o) }, []string{"Schedule"}, ofAll},
		{"cancel", 2, sometimes, func(s *sim, o Op) { s.client(o).cancel(o) }, []string{"Cancel"}, ofOne},
		{"cancel all", 1, sometimes, func(s *sim, o Op) { s.client(o).cancelAll() }, []string{"CancelAll"}, ofAll},
		{"reschedule", 1, sometimes, func(s *sim, o Op) { s.client(o).reschedule(o) }, []string{"Reschedule"}, ofOne},
		{"run now", 1, sometimes, func(s *sim, o Op) { s.client(o).runNow(o) }, []string{"RunNow"}, ofOne},
		{"read", 1, sometimes, func(s *sim, o Op) { s.client(o).read(o) }, []string{"Get", "List", "Stats", "Overview", "DeadLetters", "LastDead", "DeadLetter", "Topics"}, ofAll},
		{"redrive", 1, sometimes, func(s *sim, o Op) { s.client(o).redrive(o) }, []string{"Redrive"}, ofAll},
		{"delete dead", 1, sometimes, func(s *sim, o Op) { s.client(o).deleteDead() }, []string{"DeleteDead"}, ofAll},
		{"import", 1, sometimes, func(s *sim, o Op) { s.client(o).put(o) }, []string{"ImportTopic"}, ofOne},
		{"repair", 1, sometimes, func(s *sim, o Op) { s.client(o).repair() }, []string{"Repair"}, ofAll},
		{"forget", 1, sometimes, func(s *sim, o Op) { s.client(o).forget() }, []string{"Forget"}, ofAll},
		{"remove topic", 1, sometimes, func(s *sim, o Op) { s.client(o).removeTopic() }, []string{"RemoveTopic"}, ofAll},
		{"pause", 1, sometimes, func(s *sim, o Op) { s.client(o).pause(o) }, []string{"Pause", "Resume", "Control"}, ofAll},
		{"retune", 1, sometimes, func(s *sim, o Op) { s.client(o).retune(o) }, []string{"Retune"}, ofAll},
		{"reshard", 1, sometimes, func(s *sim, o Op) { s.client(o).reshard(o) }, []string{"Reshard", "Shards"}, ofAll},
		{"schedule in Python", 2, sometimes, func(s *sim, o Op) { s.peer().schedule(o) }, nil, ofOne},
		{"cancel in Python", 1, sometimes, func(s *sim, o Op) { s.peer().cancel(o) }, nil, ofOne},
		{"handle in Python", 1, sometimes, func(s *sim, o Op) { s.peer().handle() }, nil, ofAll},
		{"crash", 1, faulty, func(s *sim, o Op) { s.node(o).crash(time.Duration(o.B) * 100 * time.Millisecond) }, nil, ofAll},
		{"stall", 1, faulty, func(s *sim, o Op) { s.node(o).stall(time.Duration(o.B) * longestStall / 100) }, nil, ofAll},
		{"deploy", 1, sometimes, func(s *sim, o Op) { s.deploy(o) }, nil, ofAll},
		{"flush scripts", 1, sometimes, func(s *sim, _ Op) { s.flushScripts() }, nil, ofAll},
		{"wait", 1, sometimes, func(s *sim, o Op) { s.until(time.Now().Add(time.Duration(o.B) * time.Second)) }, nil, ofAll},
	}
}

// longestStall is for how long a process stands still.
const longestStall = 20 * time.Second

// elsewhere are the methods of the public Client that no kind stands for, and the tests that
// have them; none: they make no call.
var elsewhere = map[string]string{
	"AbortMove":    "redisops/shards/pairs_table_test.go",
	"Audit":        "internal/stacktest/observe/audit_test.go",
	"Connection":   "",
	"Diagnose":     "redisops/doctor",
	"Divide":       "redisops/shards/pairs_table_test.go",
	"ExportTopic":  "cmd/wakebell/topics_export_test.go",
	"History":      "internal/stacktest/observe/history_test.go",
	"MoveTopic":    "redisops/shards/pairs_table_test.go",
	"Payloads":     "",
	"Prefix":       "",
	"Queues":       "internal/faults",
	"RecordChange": "internal/stacktest/observe/audit_test.go",
	"Schedules":    "internal/faults",
	"Tail":         "internal/stacktest/life/tail_test.go",
	"Throughput":   "redisops/timers/counts_test.go",
}

func (s *sim) client(o Op) *client { return s.clients[o.Client%len(s.clients)] }
func (s *sim) node(o Op) *node     { return s.nodes[o.A%len(s.nodes)] }
func (s *sim) peer() *peer         { return &peer{s} }

// flushScripts has Redis forget its scripts, as a restart does.
func (s *sim) flushScripts() {
	if err := s.rdb.ScriptFlush(s.ctx).Err(); err != nil {
		s.broken("errors", "flush scripts: %v", err)
	}
}
