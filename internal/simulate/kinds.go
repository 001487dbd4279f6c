package simulate

import (
	"strconv"
	"time"

	"github.com/wakebell/wakebell/messages/gate"
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
	all    bool     // it concerns all timers, not the one that the operation names
}

// drawn says in which plans, and where in them, a kind is drawn.
type drawn int

const (
	sometimes drawn = iota // in about half of the plans
	always
	faulty    // sometimes, and not when nothing goes wrong
	inMany    // in each plan of that shape, and in no other
	joined    // in plans with joins, see with
	reminding // in plans with reminders, see with
	outages   // in plans with outages, see withOutages
	losses    // in plans with losses, see withLosses
	clocks    // in plans whose clock steps, see withSteps
	damages   // in plans with damages, see withDamage
)

// kinds are all operations: those of users and operators, and what happens to processes.
var kinds []kind

func init() { // in a function, because operations name their kinds
	kinds = []kind{
		{"schedule", 8, always, func(s *sim, o Op) { s.client(o).schedule(o, timers.Entry{}) }, []string{"Schedule"}, false},
		{"schedule with keep", 1, sometimes, func(s *sim, o Op) { s.client(o).schedule(o, timers.Entry{Policy: wakebelltype.PolicyKeep}) }, []string{"Schedule"}, false},
		{"schedule with earliest", 1, sometimes, func(s *sim, o Op) { s.client(o).schedule(o, timers.Entry{Policy: wakebelltype.PolicyEarliest}) }, []string{"Schedule"}, false},
		{"debounce", 2, sometimes, func(s *sim, o Op) { s.client(o).debounce(o) }, []string{"Schedule"}, false},
		{"schedule once", 2, sometimes, func(s *sim, o Op) { s.client(o).schedule(o, timers.Entry{Once: windows[o.B%len(windows)]}) }, []string{"Schedule"}, false},
		{"schedule without its key", 1, sometimes, func(s *sim, o Op) { s.client(o).scheduleWithoutKey(o) }, []string{"Schedule"}, false},
		{"schedule a hundred", 1, sometimes, func(s *sim, o Op) { s.client(o).scheduleHundred(o) }, []string{"Schedule"}, true},
		{"schedule many", 1, sometimes, func(s *sim, o Op) { s.client(o).scheduleMany(o) }, []string{"Schedule"}, true},
		{"schedule hundreds", 8, inMany, func(s *sim, o Op) { s.client(o).scheduleHundreds(o) }, []string{"Schedule"}, true},
		{"import hundreds", 2, inMany, func(s *sim, o Op) { s.client(o).putHundreds(o) }, []string{"ImportTopic"}, true},
		{"cancel", 2, sometimes, func(s *sim, o Op) { s.client(o).cancel(o) }, []string{"Cancel"}, false},
		{"cancel all", 1, sometimes, func(s *sim, o Op) { s.client(o).cancelAll() }, []string{"CancelAll"}, true},
		{"reschedule", 1, sometimes, func(s *sim, o Op) { s.client(o).reschedule(o) }, []string{"Reschedule"}, false},
		{"run now", 1, sometimes, func(s *sim, o Op) { s.client(o).runNow(o) }, []string{"RunNow"}, false},
		{"read", 1, sometimes, func(s *sim, o Op) { s.client(o).read(o) }, []string{"Get", "List", "Stats", "Overview", "DeadLetters", "LastDead", "DeadLetter", "Topics"}, true},
		{"redrive", 1, sometimes, func(s *sim, o Op) { s.client(o).redrive(o) }, []string{"Redrive"}, true},
		{"delete dead", 1, sometimes, func(s *sim, o Op) { s.client(o).deleteDead() }, []string{"DeleteDead"}, true},
		{"import", 1, sometimes, func(s *sim, o Op) { s.client(o).put(o) }, []string{"ImportTopic"}, false},
		{"repair", 1, sometimes, func(s *sim, o Op) { s.client(o).repair() }, []string{"Repair"}, true},
		{"forget", 1, sometimes, func(s *sim, o Op) { s.client(o).forget() }, []string{"Forget"}, true},
		{"remove topic", 1, sometimes, func(s *sim, o Op) { s.client(o).removeTopic() }, []string{"RemoveTopic"}, true},
		{"pause", 1, sometimes, func(s *sim, o Op) { s.client(o).pause(o) }, []string{"Pause", "PauseUntil", "Resume", "Control"}, true},
		{"retune", 1, sometimes, func(s *sim, o Op) { s.client(o).retune(o) }, []string{"Retune"}, true},
		{"reshard", 1, sometimes, func(s *sim, o Op) { s.client(o).reshard(o) }, []string{"Reshard", "Shards"}, true},
		{"schedule where it moves", 3, sometimes, func(s *sim, o Op) { s.travelling().schedule(o) }, []string{"Schedule"}, true},
		{"move", 1, sometimes, func(s *sim, o Op) { s.travelling().move(o) }, []string{"MoveTopic"}, true},
		{"join", 6, joined, func(s *sim, o Op) { s.waiting().schedule(o) }, []string{"Schedule"}, true},
		{"chain", 1, joined, func(s *sim, o Op) { s.waiting().chain(o) }, []string{"Schedule"}, true},
		{"schedule a part", 2, joined, func(s *sim, o Op) { s.waiting().further(o, false) }, []string{"Schedule"}, true},
		{"add parts", 2, joined, func(s *sim, o Op) { s.waiting().further(o, true) }, []string{"AddParts"}, true},
		{"close a join", 3, joined, func(s *sim, o Op) { s.waiting().close(o) }, []string{"CloseJoin"}, true},
		{"cancel a join", 1, joined, func(s *sim, o Op) { s.waiting().cancelJoin(o) }, []string{"CancelJoin"}, true},
		{"cancel a part", 2, joined, func(s *sim, o Op) { s.waiting().cancelPart(o) }, []string{"Cancel"}, true},
		{"read a join", 1, joined, func(s *sim, o Op) { s.waiting().read(o) }, []string{"Join", "Parts"}, true},
		{"reshard parts", 1, joined, func(s *sim, o Op) { s.waiting().reshard(o) }, []string{"Reshard"}, true},
		{"remind", 4, reminding, func(s *sim, o Op) { s.minding().remind(o) }, nil, true},
		{"remind again and again", 3, reminding, func(s *sim, o Op) { s.minding().remindEvery(o) }, nil, true},
		{"forget a reminder", 2, reminding, func(s *sim, o Op) { s.minding().forget(o) }, nil, true},
		{"read reminders", 1, reminding, func(s *sim, _ Op) { s.minding().readAll() }, nil, true},
		{"schedule in Python", 2, sometimes, func(s *sim, o Op) { s.peer().schedule(o) }, nil, false},
		{"cancel in Python", 1, sometimes, func(s *sim, o Op) { s.peer().cancel(o) }, nil, false},
		{"handle in Python", 1, sometimes, func(s *sim, o Op) { s.peer().handle() }, nil, true},
		{"publish", 2, sometimes, func(s *sim, o Op) { s.client(o).publish(o) }, []string{"Queues"}, true},
		{"join the gate", 2, sometimes, func(s *sim, o Op) { s.guests[o.A%3].join(gate.Join) }, nil, true},
		{"try the gate", 1, sometimes, func(s *sim, o Op) { s.guests[o.A%3].join(gate.Try) }, nil, true},
		{"crash at the gate", 1, faulty, func(s *sim, o Op) { s.guests[o.A%3].crash(time.Duration(o.B) * 100 * time.Millisecond) }, nil, true},
		{"stall at the gate", 1, faulty, func(s *sim, o Op) { s.guests[o.A%3].stalled = time.Now().Add(time.Duration(o.B) * longestStall / 100) }, nil, true},
		{"put schedule", 1, sometimes, func(s *sim, o Op) { s.client(o).putSchedule(o) }, []string{"Schedules"}, true},
		{"delete schedule", 1, sometimes, func(s *sim, o Op) { s.client(o).deleteSchedule("s" + strconv.Itoa(o.A%4)) }, []string{"Schedules"}, true},
		{"crash a beat", 1, faulty, func(s *sim, o Op) { s.beats[o.A%2].crash(time.Duration(o.B) * 100 * time.Millisecond) }, nil, true},
		{"crash", 1, faulty, func(s *sim, o Op) { s.node(o).crash(time.Duration(o.B) * 100 * time.Millisecond) }, nil, true},
		{"stall", 1, faulty, func(s *sim, o Op) { s.node(o).stall(time.Duration(o.B) * longestStall / 100) }, nil, true},
		{"deploy", 1, sometimes, func(s *sim, o Op) { s.deploy(o) }, nil, true},
		{"restart Redis", 1, outages, func(s *sim, o Op) { s.restartRedis(o) }, nil, true},
		{"refuse commands", 1, outages, func(s *sim, o Op) { s.refuseCommands(o) }, nil, true},
		{"lose writes", 1, losses, func(s *sim, o Op) { s.loseWrites(o) }, nil, true},
		{"step the clock of Redis", 1, clocks, func(s *sim, o Op) { s.stepClock(o) }, nil, true},
		{"lose a part of the topic", 2, damages, func(s *sim, o Op) { s.loseParts(o) }, nil, true},
		{"lose a part of the queue", 1, damages, func(s *sim, o Op) { s.messages.lose(o) }, nil, true},
		{"flush scripts", 1, sometimes, func(s *sim, _ Op) { s.flushScripts() }, nil, true},
		{"wait", 1, sometimes, func(s *sim, o Op) { s.until(time.Now().Add(time.Duration(o.B) * time.Second)) }, nil, true},
	}
}

// longestStall is for how long a process stands still.
const longestStall = 20 * time.Second

// elsewhere are the methods of the public Client that no kind stands for, and the tests that
// have them; none: they make no call.
var elsewhere = map[string]string{
	"AbortMove":    "redisops/shards/pairs_table_test.go",
	"AskNodes":     "internal/stacktest/life/ask_nodes_test.go",
	"Audit":        "internal/stacktest/observe/audit_test.go",
	"Connection":   "",
	"CountDue":     "redisops/shards/due_test.go",
	"Diagnose":     "redisops/doctor",
	"Divide":       "redisops/shards/pairs_table_test.go",
	"ExportTopic":  "cmd/wakebell/topics_export_test.go",
	"History":      "internal/stacktest/observe/history_test.go",
	"Payloads":     "",
	"Prefix":       "",
	"Report":       "wakebelltest/progress_test.go",
	"RecordChange": "internal/stacktest/observe/audit_test.go",
	"Tail":         "internal/stacktest/life/tail_test.go",
	"Throughput":   "redisops/timers/counts_test.go",
	"Wait":         "wakebelltest/progress_test.go",
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
