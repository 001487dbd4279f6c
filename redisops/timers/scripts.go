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
	exchangeScript      = lua.Load("exchange")
	scheduleScript      = lua.Load("schedule")
	cancelScript        = lua.Load("cancel")
	cancelAllScript     = lua.Load("cancel_all")
	getScript           = lua.Load("get")
	rescheduleScript    = lua.Load("reschedule")
	runNowScript        = lua.Load("run_now")
	listScript          = lua.Load("list")
	glanceScript        = lua.Load("glance")
	countScript         = lua.Load("count")
	deadScript          = lua.Load("dead", "letters")
	deleteDeadScript    = lua.Load("delete_dead", "letters")
	redriveScript       = lua.Load("redrive", "letters")
	healScript          = lua.Load("heal")
	controlScript       = lua.Load("control")
	statsScript         = lua.Load("stats")
	lastDeadScript      = lua.Load("last_dead")
	apartScript         = lua.Bare("apart")
	keyedScheduleScript = lua.Within("keyed", "schedule")
	keyedCancelScript   = lua.Within("keyed", "cancel")
)

var (
	bareScript = lua.Load("bare")
	tryScript  = lua.Load("try")
)

var (
	queueExchangeScript = lua.Load("queue_exchange", "queue", "queue_dead")
	queuePublishScript  = lua.Load("queue_publish", "queue")
	queueLettersScript  = lua.Load("queue_letters", "queue", "queue_dead")
	queueRedriveScript  = lua.Load("queue_redrive", "queue", "queue_dead")
	queueDiscardScript  = lua.Load("queue_discard", "queue", "queue_dead")
	queueHealScript     = lua.Load("queue_heal", "queue", "queue_dead")
	queuePurgeScript    = lua.Load("queue_purge", "queue")
	queueStatsScript    = lua.Load("queue_stats", "queue")
)

var (
	gateExchangeScript = lua.Load("gate_exchange", "gate_turns")
	gateBeatScript     = lua.Load("gate_beat", "gate_turns")
	gatePlacesScript   = lua.Load("gate_places")
	gateShowScript     = lua.Load("gate_show")
	gateReleaseScript  = lua.Load("gate_release", "gate_turns")
	gateGuardScript    = lua.Load("gate_guard", "gate_turns")
	gateRepairScript   = lua.Load("gate_repair", "gate_turns")
	gateRemoveScript   = lua.Load("gate_remove", "gate_turns")
)

var (
	beatLookScript   = lua.Load("beat_look", "beat_lock")
	beatFireScript   = lua.Load("beat_fire", "beat_lock")
	beatOnceScript   = lua.Within("beat_once", "beat_fire", "beat_lock")
	beatPutScript    = lua.Load("beat_put")
	beatDeleteScript = lua.Load("beat_delete")
	beatSendScript   = lua.Load("beat_send")
)
