package main

import "github.com/spf13/cobra"

// globalFlags adds the flags that all commands have.
func (a *app) globalFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&a.redisURL, "redis", "", "`URL` of Redis, or embedded (default $WAKEBELL_REDIS, else "+defaultRedis+")")
	a.tls.register(root)
	a.remote.register(root)
	flags.StringVar(&a.prefix, "prefix", "", "`prefix` for the name of every topic")
	flags.StringVar(&a.keys.Timeline, "timeline-key", "", "base `name` of the keys with due times (default timers_timeline)")
	flags.StringVar(&a.keys.Payloads, "payloads-key", "", "base `name` of the keys with payloads (default timers_payloads)")
	flags.BoolVar(&a.keys.HashTag, "hash-tag", false, "put topics in braces, so that a Cluster stores the keys of each in one slot")
}
