package cli

import "github.com/spf13/cobra"

// GlobalFlags adds the flags that all commands have.
func (a *App) GlobalFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&a.RedisURL, "redis", "", "`URL` of Redis, or embedded (default $WAKEBELL_REDIS, else "+defaultRedis+")")
	a.tls.register(root)
	a.remote.register(root)
	flags.StringVar(&a.Prefix, "prefix", "", "`prefix` for the name of every topic")
	flags.StringVar(&a.Keys.Timeline, "timeline-key", "", "base `name` of the keys with due times (default timers_timeline)")
	flags.StringVar(&a.Keys.Payloads, "payloads-key", "", "base `name` of the keys with payloads (default timers_payloads)")
	a.color, a.times = OneOf("auto", "always", "never"), OneOf("auto", "relative", "absolute")
	flags.Var(&a.color, "color", "colours; auto: on a terminal, unless NO_COLOR is set")
	flags.Var(&a.times, "times", "instants of tables as they are or relative to now; auto: relative on a terminal")
	CompleteChoice(root, "color", a.color)
	CompleteChoice(root, "times", a.times)
	flags.BoolVar(&a.Keys.HashTag, "hash-tag", false, "put topics in braces, so that a Cluster stores the keys of each in one slot")
}
