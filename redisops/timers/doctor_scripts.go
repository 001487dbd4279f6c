package timers

import (
	"embed"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

//go:embed lua/*.lua
var doctorFiles embed.FS

// doctorLua is the scripts of this package.
var doctorLua = scripts.NewSet(doctorFiles)

var (
	bareScript = doctorLua.Load("bare")
	tryScript  = doctorLua.Load("try")
)
