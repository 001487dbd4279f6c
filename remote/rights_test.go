package remote_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/remote"
)

const someRights = `
# principal   actions        what
billing       schedule,read  topic:invoices.* topic:refunds   # a comment
billing       handle         queue:mail
ops           *              *
"John Doe"    read           "topic:with blank" schedule:a?c
escapes       read           topic:a\*b topic:c\?d
*             read           gate:public
`

func rightsOf(t testing.TB, text string) *remote.Rights {
	t.Helper()
	granted, err := remote.ParseRights(text)
	require.NoError(t, err)
	return granted
}

func TestRightsByPattern(t *testing.T) {
	t.Parallel()
	granted := rightsOf(t, someRights)
	for _, c := range []struct {
		principal string
		action    remote.Action
		kind      remote.Kind
		name      string
		line      int // 0: denied
	}{
		{"billing", remote.ActionSchedule, remote.KindTopic, "invoices.eu", 3},
		{"billing", remote.ActionRead, remote.KindTopic, "invoices.", 3},
		{"billing", remote.ActionRead, remote.KindTopic, "refunds", 3},
		{"billing", remote.ActionHandle, remote.KindQueue, "mail", 4},
		{"billing", remote.ActionRead, remote.KindTopic, "invoices", 0},
		{"billing", remote.ActionRead, remote.KindTopic, "my-invoices.eu", 0},
		{"billing", remote.ActionRead, remote.KindTopic, "refunds2", 0},
		{"billing", remote.ActionHandle, remote.KindTopic, "refunds", 0},
		{"billing", remote.ActionOperate, remote.KindTopic, "refunds", 0},
		{"billing", remote.ActionSchedule, remote.KindQueue, "refunds", 0},
		{"billing", remote.ActionHandle, remote.KindTopic, "mail", 0},
		{"Billing", remote.ActionRead, remote.KindTopic, "refunds", 0},
		{"ops", remote.ActionOperate, remote.KindTopic, "x", 5},
		{"ops", remote.ActionHandle, remote.KindSchedule, "", 5},
		{"John Doe", remote.ActionRead, remote.KindTopic, "with blank", 6},
		{"John Doe", remote.ActionRead, remote.KindSchedule, "aéc", 6},
		{"John Doe", remote.ActionRead, remote.KindSchedule, "ac", 0},
		{"escapes", remote.ActionRead, remote.KindTopic, "a*b", 7},
		{"escapes", remote.ActionRead, remote.KindTopic, "axb", 0},
		{"escapes", remote.ActionRead, remote.KindTopic, "c?d", 7},
		{"escapes", remote.ActionRead, remote.KindTopic, "cxd", 0},
		{"", remote.ActionRead, remote.KindGate, "public", 8},
		{"billing", remote.ActionRead, remote.KindGate, "public", 8},
		{"nobody", remote.ActionRead, remote.KindGate, "private", 0},
		{"", remote.ActionRead, remote.KindTopic, "refunds", 0},
	} {
		line, ok := granted.Allow(c.principal, c.action, c.kind, c.name)
		require.Equal(t, c.line, line, "%+v", c)
		require.Equal(t, c.line != 0, ok, "%+v", c)
	}
	_, ok := rightsOf(t, "").Allow("ops", remote.ActionRead, remote.KindTopic, "x")
	require.False(t, ok, "an empty file allows nothing")
}

// A pattern with many stars takes no longer than its length times the name's.
func TestAPatternIsMatchedInBoundedTime(t *testing.T) {
	t.Parallel()
	granted := rightsOf(t, "x read topic:"+strings.Repeat("*a", 200)+"b")
	_, ok := granted.Allow("x", remote.ActionRead, remote.KindTopic, strings.Repeat("a", 5000))
	require.False(t, ok)
}

func TestWrongRightsAreRefusedByLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"billing":                              "line 1: invalid argument: 1 fields, want a principal, actions, and what they are on",
		"\n# x\nbilling read":                  "line 3: invalid argument: 2 fields",
		"a reed topic:x":                       `line 1: invalid argument: action: "reed", want one of schedule, handle, read, operate`,
		"a read,,handle topic:x":               `line 1: invalid argument: action: ""`,
		"a read topics:x":                      `line 1: invalid argument: "topics:x", want * or one of topic:, queue:, gate:, schedule:`,
		"a read topic":                         `line 1: invalid argument: "topic", want`,
		"a read topic:":                        "line 1: invalid argument: pattern: empty",
		`a read "topic:x`:                      "line 1: invalid argument: a quote without its end",
		`a read "topic:x"y`:                    "line 1: invalid argument: text behind the quote",
		`"" read topic:x`:                      "line 1: invalid argument: principal: empty",
		"a read topic:x\nb reed *\nc read x:y": `line 2: invalid argument: action: "reed"`,
	} {
		_, err := remote.ParseRights(text)
		require.ErrorIs(t, err, wakebell.ErrInvalid, text)
		require.ErrorContains(t, err, want, text)
	}
	_, err := remote.ParseRights("a\nb\nc read topic:x\nd")
	require.Len(t, strings.Split(err.Error(), "\n"), 3, "every wrong line is named")
}

func ExampleParseRights() {
	granted, err := remote.ParseRights(`
billing  schedule,read  topic:invoices.*
ops      *              *
`)
	if err != nil {
		fmt.Println(err)
		return
	}
	config := remote.Config{Rights: granted}
	for _, topic := range []string{"invoices.eu", "mail"} {
		line, ok := config.Rights.Allow("billing", remote.ActionSchedule, remote.KindTopic, topic)
		fmt.Println(topic, ok, line)
	}
	_, ok, err := granted.Check("ops", "operate", "gate:ledger")
	fmt.Println(ok, err, granted.Len())
	// Output:
	// invoices.eu true 2
	// mail false 0
	// true <nil> 5
}

func FuzzParseRights(f *testing.F) {
	f.Add(someRights)
	f.Add(`"a\"b" * topic:\*`)
	f.Fuzz(func(t *testing.T, text string) {
		granted, err := remote.ParseRights(text)
		require.Equal(t, err == nil, granted != nil)
		if err != nil {
			require.ErrorIs(t, err, wakebell.ErrInvalid)
			return
		}
		granted.Allow("a", remote.ActionRead, remote.KindTopic, text)
	})
}
