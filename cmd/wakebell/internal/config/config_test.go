package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	t.Parallel()
	file, err := Parse("f", []byte(`
health: "127.0.0.1:8080"
operators: [ops, ann]
topics:
  a: {max-concurrent: 5}
  "1": null
  b:
queues: [x, y]
`))
	require.NoError(t, err)
	require.Equal(t, &File{
		Name:   "f",
		Fields: []Field{{"health", 2, []string{"127.0.0.1:8080"}}, {"operators", 3, []string{"ops", "ann"}}},
		Topics: []Section{{"a", 5, []Field{{"max-concurrent", 5, []string{"5"}}}}, {Name: "1", Line: 6}, {Name: "b", Line: 7}},
		Queues: []Section{{Name: "x", Line: 8}, {Name: "y", Line: 8}},
	}, file)
	for _, empty := range []string{"", "# nothing\n", "---\n", "null"} {
		file, err := Parse("f", []byte(empty))
		require.NoError(t, err, empty)
		require.Equal(t, &File{Name: "f"}, file)
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"x: 1\na: b: c", "f:2: mapping values are not allowed"},
		{"a: 1\nb: 2\na: 3", "f:3: a: already on line 1"},
		{"topics:\n  a: {}\n  a: {}", "f:3: topics.a: already on line 2"},
		{"- a", "f:1: a list, want fields"},
		{"text", `f:1: "text", want fields`},
		{"a:", "f:1: a: nothing, want a value"},
		{"a: {b: c}", "f:1: a: fields, want a value"},
		{"a: [[1]]", "f:1: a: a list, want a value"},
		{"topics: 5", `f:1: topics: "5", want fields`},
		{"topics: [[a]]", "f:1: topics: a list, want a name"},
		{"topics: {a: 5}", `f:1: topics.a: "5", want fields`},
		{"a: &x 1\nb: *x", "f:2: b: an alias, want a value"},
		{"? [a]\n: 1", "f:1: a list as a name, want text"},
		{"a: 1\n---\nb: 2", "a second document, want one"},
		{strings.Repeat("#", sizeLimit+1), "f: larger than 4194304 bytes"},
	} {
		_, err := Parse("f", []byte(c.text))
		require.ErrorContains(t, err, c.want)
	}
}

func TestReadHasNameOfFile(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "wakebell.yaml")
	_, err := Read(name)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(name, []byte("x: 1\nx: 2"), 0o600))
	_, err = Read(name)
	require.ErrorContains(t, err, name+":2: x: already on line 1")
}

func TestSet(t *testing.T) {
	t.Parallel()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.Int("max-attempts", 1, "")
	flags.Bool("no-counts", false, "")
	flags.String("exec", "", "")
	flags.StringArray("topic", nil, "")
	set := func(name string, values ...string) string {
		file := &File{Name: "f"}
		errs := file.Set(flags, []Field{{name, 7, values}}, map[string][]string{"exec": nil}, "topics", "a")
		if len(errs) == 0 {
			return ""
		}
		return errs[0].Error()
	}
	require.Empty(t, set("max-attempts", "5"))
	require.Equal(t, "5", flags.Lookup("max-attempts").Value.String())
	require.Empty(t, set("exec", "ignored"), "a flag that is given")
	require.Empty(t, flags.Lookup("exec").Value.String())
	require.Equal(t, `f:7: topics.a.max-attempts: "many", want a whole number`, set("max-attempts", "many"))
	require.Equal(t, "f:7: topics.a.max-attempts: a list, want one value", set("max-attempts", "1", "2"))
	require.Equal(t, `f:7: topics.a.no-counts: "maybe", want true or false`, set("no-counts", "maybe"))
	require.Equal(t, `f:7: topics.a.max_atempts: unknown field; did you mean "max-attempts"?`, set("max_atempts", "1"))
	require.Equal(t, `f:7: topics.a.topic: unknown field`, set("topic", "1"))
}

func TestPasswordIsNotPrinted(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"redis://ann:secret@host:1/2":                       "redis://ann:xxxxx@host:1/2",
		"redis://:secret@host":                              "redis://:xxxxx@host",
		"redis://host:1/2?dial_timeout=3s":                  "redis://host:1/2?dial_timeout=3s",
		"redis+sentinel://h:1/m/0?sentinel_password=secret": "redis+sentinel://h:1/m/0?sentinel_password=xxxxx",
		"embedded": "embedded",
	} {
		require.Equal(t, want, Shown("redis", in))
	}
}

func TestPathOfWebhookIsNotPrinted(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"https://example.com:8443/hooks/secret?token=secret": "https://example.com:8443/xxxxx",
		"https://example.com?token=secret":                   "https://example.com/xxxxx",
		"https://me:secret@example.com":                      "https://xxxxx@example.com",
		"https://example.com/":                               "https://example.com/",
		"":                                                   "",
	} {
		require.Equal(t, want, Shown("post", in))
	}
}

func FuzzParse(f *testing.F) {
	f.Add("a: 1\ntopics: {x: {exec: y}}\nqueues: [z]\n")
	f.Add("topics:\n  &a a: *a\n")
	f.Add("\"\\x\": [")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Parse("f", []byte(text))
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		// What is printed reads as what it was.
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags.String("exec", "", "")
		for _, section := range file.Topics {
			for _, field := range section.Fields {
				if len(field.Values) != 1 || flags.Set("exec", field.Values[0]) != nil {
					continue
				}
				again, err := Parse("f", []byte("topics:\n"+FormatSection(section.Name, flags)))
				require.NoError(t, err, "%q", FormatSection(section.Name, flags))
				require.Equal(t, section.Name, again.Topics[0].Name)
				require.Equal(t, field.Values, again.Topics[0].Fields[0].Values)
			}
		}
	})
}
