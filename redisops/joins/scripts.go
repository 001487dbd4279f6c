package joins

import (
	"embed"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// lua is the scripts of this package.
var lua = scripts.NewSet("joins", luaFiles)

var (
	enlistScript = lua.Load("enlist")
	settleScript = lua.Load("settle")
	noteScript   = lua.Load("note")
	pageScript   = lua.Load("page")
	dueScript    = lua.Load("due")
	checkScript  = lua.Load("check")
)
