package queue

import (
	"embed"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// lua is the scripts of this package.
var lua = scripts.NewSet("queue", luaFiles)

var (
	exchangeScript = lua.Load("exchange", "flow_off", "shared", "dead")
	publishScript  = lua.Load("publish", "shared", "tally")
	listDeadScript = lua.Load("list_dead", "shared", "dead")
	redriveScript  = lua.Load("redrive", "shared", "dead", "tally")
	discardScript  = lua.Load("discard", "shared", "dead")
	healScript     = lua.Load("heal", "shared", "dead")
	purgeScript    = lua.Load("purge", "shared")
	lostScript     = lua.Load("lost_leases", "shared")
	statsScript    = lua.Load("stats", "shared")

	exchangeFlowScript = lua.Variant("exchange", "limits", "flow", "shared", "dead")
)
