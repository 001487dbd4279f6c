package gates

import (
	"embed"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// lua is the scripts of this package.
var lua = scripts.NewSet("gates", luaFiles)

var (
	exchangeScript  = lua.Load("exchange", "turns")
	heartbeatScript = lua.Load("heartbeat", "turns")
	placesScript    = lua.Load("places")
	showScript      = lua.Load("show")
	releaseScript   = lua.Load("release", "turns")
	guardScript     = lua.Load("guard", "turns")
	repairScript    = lua.Load("repair", "turns")
	holdsScript     = lua.Load("holds")
	removeScript    = lua.Load("remove", "turns")
)
