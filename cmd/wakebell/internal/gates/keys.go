package gates

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/wakebelltype"
)

// keysFlag adds --keys, which sets keys.
func keysFlag(cmd *cobra.Command, keys *wakebelltype.GateKeys) {
	cmd.Flags().Var(&keysValue{keys}, "keys",
		"base names of keys other than the default, as `NAME=KEY,...`: "+strings.Join(keyNames(), ", "))
}

// keysValue reads --keys, which may be repeated.
type keysValue struct{ keys *wakebelltype.GateKeys }

func (v *keysValue) Set(text string) error {
	for pair := range strings.SplitSeq(text, ",") {
		name, key, _ := strings.Cut(pair, "=")
		field := keyFields(v.keys)[name]
		switch {
		case field == nil:
			return cli.Usagef("%q, want one of %s", name, strings.Join(keyNames(), ", "))
		case key == "":
			return cli.Usagef("%s: empty", name)
		}
		*field = key
	}
	return nil
}

func (v *keysValue) String() string { return "" }

func (v *keysValue) Type() string { return "names" }

func keyFields(k *wakebelltype.GateKeys) map[string]*string {
	return map[string]*string{
		"stream": &k.Stream, "group": &k.Group, "signal": &k.Signal, "state": &k.State, "guard": &k.Guard,
		"exchange": &k.Exchange, "presence": &k.Presence, "deadlines": &k.Deadlines, "holds": &k.Holds, "mark": &k.Mark,
	}
}

func keyNames() []string {
	return slices.Sorted(maps.Keys(keyFields(&wakebelltype.GateKeys{})))
}
