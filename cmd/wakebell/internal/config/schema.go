package config

import (
	"encoding/json"
	"strings"

	"github.com/spf13/pflag"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

// schema is a JSON schema, as far as files need it.
type schema struct {
	Version     string             `json:"$schema,omitempty"`
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description,omitempty"`
	Type        any                `json:"type,omitempty"` // a name, or several
	Enum        []string           `json:"enum,omitempty"`
	AnyOf       []*schema          `json:"anyOf,omitempty"`
	Items       *schema            `json:"items,omitempty"`
	Properties  map[string]*schema `json:"properties,omitempty"`
	// Additional is false, or what fields are that Properties does not name.
	Additional any `json:"additionalProperties,omitempty"`
}

// Schema returns the JSON schema of files: a field for each flag of top, and sections with
// a field for each flag of a topic and of a queue. It is of draft 7, because editors of
// YAML know no later one. It says nothing about bounds.
func Schema(top, topic, queue *pflag.FlagSet) ([]byte, error) {
	file := object(top)
	file.Version, file.Title = "http://json-schema.org/draft-07/schema#", "Configuration of a Wakebell node"
	file.Properties["topics"] = sections("topics to handle, each with fields of its own", topic)
	file.Properties["queues"] = sections("queues to handle, each with fields of its own", queue)
	text, err := json.MarshalIndent(file, "", "  ")
	return append(text, '\n'), err
}

// object has a field for each flag.
func object(flags *pflag.FlagSet) *schema {
	o := &schema{Type: []string{"object", "null"}, Properties: map[string]*schema{}, Additional: false}
	flags.VisitAll(func(f *pflag.Flag) {
		if IsField(f) {
			o.Properties[f.Name] = value(f)
		}
	})
	return o
}

// sections is a mapping from names to the fields of their flags, or a list of names.
func sections(description string, flags *pflag.FlagSet) *schema {
	return &schema{Description: description, AnyOf: []*schema{
		{Type: []string{"object", "null"}, Additional: object(flags)},
		{Type: "array", Items: &schema{Type: scalars}},
	}}
}

// scalars are the types of a text, which YAML may read as a number or a truth value.
var scalars = []string{"string", "number", "boolean"}

// value is what a flag takes.
func value(f *pflag.Flag) *schema {
	_, usage := pflag.UnquoteUsage(f)
	one := &schema{Description: usage}
	switch name := f.Value.Type(); {
	case name == "bool":
		one.Type = "boolean"
	case name == "int", name == "int64":
		one.Type = "integer"
	case name == "float64":
		one.Type = "number"
	case name == "duration":
		one.Type = []string{"string", "number"} // 0 needs no unit
	case strings.Contains(name, "|"):
		one.Enum = strings.Split(name, "|")
	default:
		one.Type = scalars
	}
	if !cli.IsList(f) {
		return one
	}
	one.Description = ""
	return &schema{Description: usage, AnyOf: []*schema{one, {Type: "array", Items: one}}}
}
