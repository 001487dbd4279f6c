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
	exchangeScript = lua.Load("exchange")
	publishScript  = lua.Load("publish")
	listDeadScript = lua.Load("list_dead")
	redriveScript  = lua.Load("redrive")
	discardScript  = lua.Load("discard")
	healScript     = lua.Load("heal")
	purgeScript    = lua.Load("purge")
	lostScript     = lua.Load("lost_leases")
	statsScript    = lua.Load("stats")

	exchangeFlowScript = lua.Variant("exchange", "flow")
)
