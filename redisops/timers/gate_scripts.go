package timers

import (
	"embed"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

//go:embed lua/*.lua
var gateFiles embed.FS

// gateLua is the scripts of this package.
var gateLua = scripts.NewSet(gateFiles)

var (
	gateExchangeScript = gateLua.Load("gate_exchange", "gate_turns")
	gateBeatScript     = gateLua.Load("gate_beat", "gate_turns")
	gatePlacesScript   = gateLua.Load("gate_places")
	gateShowScript     = gateLua.Load("gate_show")
	gateReleaseScript  = gateLua.Load("gate_release", "gate_turns")
	gateGuardScript    = gateLua.Load("gate_guard", "gate_turns")
	gateRepairScript   = gateLua.Load("gate_repair", "gate_turns")
	gateRemoveScript   = gateLua.Load("gate_remove", "gate_turns")
)
