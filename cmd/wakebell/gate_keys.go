package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/wakebelltype"
)

// gateKeysFlag adds --keys, which sets keys.
func gateKeysFlag(cmd *cobra.Command, keys *wakebelltype.GateKeys) {
	cmd.Flags().Var(&gateKeysValue{keys}, "keys",
		"base names of keys other than the default, as `NAME=KEY,...`: "+strings.Join(gateKeyNames(), ", "))
}

// gateKeysValue reads --keys, which may be repeated.
type gateKeysValue struct{ keys *wakebelltype.GateKeys }

func (v *gateKeysValue) Set(text string) error {
	for pair := range strings.SplitSeq(text, ",") {
		name, key, _ := strings.Cut(pair, "=")
		field := gateKeyFields(v.keys)[name]
		switch {
		case field == nil:
			return usagef("%q, want one of %s", name, strings.Join(gateKeyNames(), ", "))
		case key == "":
			return usagef("%s: empty", name)
		}
		*field = key
	}
	return nil
}

func (v *gateKeysValue) String() string { return "" }

func (v *gateKeysValue) Type() string { return "names" }

func gateKeyFields(k *wakebelltype.GateKeys) map[string]*string {
	return map[string]*string{
		"stream": &k.Stream, "group": &k.Group, "signal": &k.Signal, "state": &k.State, "guard": &k.Guard,
		"exchange": &k.Exchange, "presence": &k.Presence, "deadlines": &k.Deadlines, "mark": &k.Mark,
	}
}

func gateKeyNames() []string {
	return slices.Sorted(maps.Keys(gateKeyFields(&wakebelltype.GateKeys{})))
}
