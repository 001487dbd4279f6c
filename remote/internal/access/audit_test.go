package access

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/wakebell/wakebell/redisops/audit"
	"github.com/wakebell/wakebell/remote/rights"
)

// TestEveryOperationIsAudited checks that the requests that operators need rights for,
// and those that change recurring schedules, are those that are recorded.
func TestEveryOperationIsAudited(t *testing.T) {
	t.Parallel()
	onlyRead := []string{"DiagnoseRequest", "ListTopicsRequest", "ListAuditRequest"}
	var want []string
	for full, needs := range Needs {
		name := full[strings.LastIndex(full, ".")+1:]
		if slices.Contains(onlyRead, name) || !operates(needs(filled(t, full))) {
			continue
		}
		want = append(want, name)
	}
	var recorded []string
	for _, o := range audit.Operations {
		if o.Request != "" { // peers cannot request it
			recorded = append(recorded, o.Request)
		}
		require.NotEqual(t, string(o.Name), o.Name.Kind())
	}
	slices.Sort(want)
	slices.Sort(recorded)
	require.Equal(t, want, slices.Compact(recorded))
}

// operates reports whether a right is one of operators, or to change schedules.
func operates(needs []need) bool {
	return slices.ContainsFunc(needs, func(n need) bool {
		return n.action == rights.ActionOperate ||
			(n.action == rights.ActionSchedule && slices.Contains(n.kinds, rights.KindSchedule))
	})
}

// filled returns a request whose lists of messages have an item.
func filled(t *testing.T, full string) proto.Message {
	t.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(full))
	require.NoError(t, err)
	m := kind.New()
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		if f := fields.Get(i); f.IsList() && f.Message() != nil {
			list := m.Mutable(f).List()
			list.Append(list.NewElement())
		}
	}
	return m.Interface()
}
