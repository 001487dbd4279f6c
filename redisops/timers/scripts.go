package timers

import (
	"embed"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// lua is the scripts of this package.
var lua = scripts.NewSet(luaFiles)

var (
	exchangeScript      = lua.Load("exchange", "packed", "replay", "acks")
	scheduleScript      = lua.Load("schedule", "tally")
	cancelScript        = lua.Load("cancel")
	cancelAllScript     = lua.Load("cancel_all")
	getScript           = lua.Load("get")
	rescheduleScript    = lua.Load("reschedule")
	runNowScript        = lua.Load("run_now")
	listScript          = lua.Load("list")
	peekScript          = lua.Load("peek")
	deadScript          = lua.Load("dead", "letters")
	deleteDeadScript    = lua.Load("delete_dead", "letters")
	redriveScript       = lua.Load("redrive", "letters")
	healScript          = lua.Load("heal")
	controlScript       = lua.Load("control")
	statsScript         = lua.Load("stats")
	countsScript        = lua.Load("counts", "tally")
	historyScript       = lua.Load("history")
	lastDeadScript      = lua.Load("last_dead")
	apartScript         = lua.Bare("apart")
	removeTopicScript   = lua.Load("remove_topic")
	keyedScheduleScript = lua.Within("keyed", "schedule", "tally")
	keyedCancelScript   = lua.Within("keyed", "cancel")
)
