// Package moduleonly has functions that are for the packages of this module only:
// they construct values of public types that users must not construct. The package
// that declares the type sets the function; values travel as any, because that
// package imports this one.
package moduleonly

import (
	"github.com/redis/go-redis/v9"

	actorgates "github.com/wakebell/wakebell/actors/gates"
)

// SystemGates returns the *gate.Gates of a System, and the configuration of the
// actor behind them. Config is a gate.Config. Running returns the actor's
// handle, or nil while it does not run.
var SystemGates func(rdb redis.UniversalClient, config any, running func() *actorgates.Gates) (gates any, actor actorgates.Config, err error)
