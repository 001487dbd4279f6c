package config

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

// Format returns the fields of a file for flags, each with its usage. Those that have
// their default are comments.
func Format(flags *pflag.FlagSet) string {
	var out strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if !IsField(f) {
			return
		}
		_, usage := pflag.UnquoteUsage(f)
		hidden := ""
		if !f.Changed {
			hidden = "# "
		}
		fmt.Fprintf(&out, "# %s\n%s%s: %s\n\n", usage, hidden, f.Name, Value(f))
	})
	return out.String()
}

// FormatSection returns a section of a file with the flags that are changed.
func FormatSection(name string, flags *pflag.FlagSet) string {
	var out strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			fmt.Fprintf(&out, "    %s: %s\n", f.Name, Value(f))
		}
	})
	if out.Len() == 0 {
		return fmt.Sprintf("  %s: {}\n", scalar(name))
	}
	return fmt.Sprintf("  %s:\n%s", scalar(name), out.String())
}

// Value returns the value of a flag in YAML, without the password of a URL.
func Value(f *pflag.Flag) string {
	values := cli.FlagValues(f)
	if len(values) != 1 {
		for i, v := range values {
			values[i] = scalar(v)
		}
		return "[" + strings.Join(values, ", ") + "]"
	}
	switch f.Value.Type() {
	case "bool", "int", "int64", "float64", "duration":
		return values[0]
	}
	return scalar(Shown(f.Name, values[0]))
}

// Shown returns the value of a flag for people and logs: without the password of --redis,
// and of --post without its path and query.
func Shown(flag, value string) string {
	if flag == "post" {
		scheme, rest, is := strings.Cut(value, "://")
		if !is && value != "" {
			return "xxxxx"
		}
		if end := strings.IndexAny(rest, "/?#"); end >= 0 && rest[end:] != "/" {
			rest = rest[:end] + "/xxxxx"
		}
		if at := strings.LastIndexByte(rest, '@'); at >= 0 {
			rest = "xxxxx" + rest[at:]
		}
		if !is {
			return ""
		}
		return scheme + "://" + rest
	}
	if flag != "redis" || !strings.Contains(value, "://") {
		return value
	}
	scheme, rest, _ := strings.Cut(value, "://")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		user, _, secret := strings.Cut(rest[:at], ":")
		if secret {
			user += ":xxxxx"
		}
		rest = user + rest[at:]
	}
	servers, query, more := strings.Cut(rest, "?")
	if values, err := url.ParseQuery(query); more && err == nil {
		for key := range values {
			if strings.Contains(key, "password") {
				values.Set(key, "xxxxx")
			}
		}
		servers += "?" + values.Encode()
	}
	return scheme + "://" + servers
}

// scalar returns text as a value of YAML on one line.
func scalar(text string) string {
	node := yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	if strings.ContainsAny(text, "\n\r\u0085\u2028\u2029") {
		node.Style = yaml.DoubleQuotedStyle
	}
	line, err := yaml.Marshal(&node)
	if err != nil || strings.Count(string(line), "\n") > 1 { // a long text is folded
		return fmt.Sprintf("%q", text)
	}
	return strings.TrimSuffix(string(line), "\n")
}
