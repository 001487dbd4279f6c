package rights_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/remote/rights"
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

func rightsOf(t testing.TB, text string) *rights.Grants {
	t.Helper()
	granted, err := rights.Parse(text)
	require.NoError(t, err)
	return granted
}

func TestRightsByPattern(t *testing.T) {
	t.Parallel()
	granted := rightsOf(t, someRights)
	for _, c := range []struct {
		principal string
		action    rights.Action
		kind      rights.Kind
		name      string
		line      int // 0: denied
	}{
		{"billing", rights.ActionSchedule, rights.KindTopic, "invoices.eu", 3},
		{"billing", rights.ActionRead, rights.KindTopic, "invoices.", 3},
		{"billing", rights.ActionRead, rights.KindTopic, "refunds", 3},
		{"billing", rights.ActionHandle, rights.KindQueue, "mail", 4},
		{"billing", rights.ActionRead, rights.KindTopic, "invoices", 0},
		{"billing", rights.ActionRead, rights.KindTopic, "my-invoices.eu", 0},
		{"billing", rights.ActionRead, rights.KindTopic, "refunds2", 0},
		{"billing", rights.ActionHandle, rights.KindTopic, "refunds", 0},
		{"billing", rights.ActionOperate, rights.KindTopic, "refunds", 0},
		{"billing", rights.ActionSchedule, rights.KindQueue, "refunds", 0},
		{"billing", rights.ActionHandle, rights.KindTopic, "mail", 0},
		{"Billing", rights.ActionRead, rights.KindTopic, "refunds", 0},
		{"ops", rights.ActionOperate, rights.KindTopic, "x", 5},
		{"ops", rights.ActionHandle, rights.KindSchedule, "", 5},
		{"John Doe", rights.ActionRead, rights.KindTopic, "with blank", 6},
		{"John Doe", rights.ActionRead, rights.KindSchedule, "aéc", 6},
		{"John Doe", rights.ActionRead, rights.KindSchedule, "ac", 0},
		{"escapes", rights.ActionRead, rights.KindTopic, "a*b", 7},
		{"escapes", rights.ActionRead, rights.KindTopic, "axb", 0},
		{"escapes", rights.ActionRead, rights.KindTopic, "c?d", 7},
		{"escapes", rights.ActionRead, rights.KindTopic, "cxd", 0},
		{"", rights.ActionRead, rights.KindGate, "public", 8},
		{"billing", rights.ActionRead, rights.KindGate, "public", 8},
		{"unknown", rights.ActionRead, rights.KindGate, "private", 0},
		{"", rights.ActionRead, rights.KindTopic, "refunds", 0},
	} {
		line, ok := granted.Allow(c.principal, c.action, c.kind, c.name)
		require.Equal(t, c.line, line, "%+v", c)
		require.Equal(t, c.line != 0, ok, "%+v", c)
	}
	_, ok := rightsOf(t, "").Allow("ops", rights.ActionRead, rights.KindTopic, "x")
	require.False(t, ok, "an empty file allows nothing")
}

// Matching takes at most the length of the pattern times the length of the name.
func TestPatternIsMatchedInBoundedTime(t *testing.T) {
	t.Parallel()
	granted := rightsOf(t, "x read topic:"+strings.Repeat("*a", 200)+"b")
	_, ok := granted.Allow("x", rights.ActionRead, rights.KindTopic, strings.Repeat("a", 5000))
	require.False(t, ok)
}

func TestParseNamesInvalidLines(t *testing.T) {
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
		_, err := rights.Parse(text)
		require.ErrorIs(t, err, wakebell.ErrInvalid, text)
		require.ErrorContains(t, err, want, text)
	}
	_, err := rights.Parse("a\nb\nc read topic:x\nd")
	require.Len(t, strings.Split(err.Error(), "\n"), 3, "every invalid line is named")
}

func ExampleParse() {
	granted, err := rights.Parse(`
billing  schedule,read  topic:invoices.*
ops      *              *
`)
	if err != nil {
		fmt.Println(err)
		return
	}
	config := remote.Config{Rights: granted}
	for _, topic := range []string{"invoices.eu", "mail"} {
		line, ok := config.Rights.Allow("billing", rights.ActionSchedule, rights.KindTopic, topic)
		fmt.Println(topic, ok, line)
	}
	_, ok, err := granted.Check("ops", "operate", "gate:accounts")
	fmt.Println(ok, err, granted.Len())
	// Output:
	// invoices.eu true 2
	// mail false 0
	// true <nil> 5
}

func FuzzParse(f *testing.F) {
	f.Add(someRights)
	f.Add(`"a\"b" * topic:\*`)
	f.Fuzz(func(t *testing.T, text string) {
		granted, err := rights.Parse(text)
		require.Equal(t, err == nil, granted != nil)
		if err != nil {
			require.ErrorIs(t, err, wakebell.ErrInvalid)
			return
		}
		granted.Allow("a", rights.ActionRead, rights.KindTopic, text)
	})
}
