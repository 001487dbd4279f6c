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
	exchangeScript  = lua.Load("exchange")
	heartbeatScript = lua.Load("heartbeat")
	placesScript    = lua.Load("places")
	showScript      = lua.Load("show")
	releaseScript   = lua.Load("release")
	guardScript     = lua.Load("guard")
	repairScript    = lua.Load("repair")
	holdsScript     = lua.Load("holds")
	removeScript    = lua.Load("remove")
)
