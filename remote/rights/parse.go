package rights

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/wakebell/wakebell"
)

// Parse parses the text of a file of rights. Each line grants actions:
//
//	# principal  actions          what
//	billing      schedule,read    topic:invoices.* topic:refunds
//	billing      handle           queue:mail
//	ops          *                *
//
// Fields are separated by blanks. A field that contains a blank is in double quotes,
// like a Go string. The actions are schedule, handle, read and operate, separated by
// commas, or * for all. An object is a kind (topic, queue, gate, or schedule for a
// recurring schedule), a colon and a pattern; * alone is every name of every kind. In
// a pattern * matches any text, ? matches one character, and \ escapes either of them.
// The principal is the owner of a token or the common name of a certificate, or * for
// all of them. # starts a comment.
//
// The error names every invalid line, and wraps wakebell.ErrInvalid.
func Parse(text string) (*Grants, error) {
	var grants []grant
	var errs []error
	number := 0
	for line := range strings.Lines(text) {
		number++
		found, err := grantsOf(line, number)
		if err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", number, err))
		}
		grants = append(grants, found...)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return newRights(grants), nil
}

// grantsOf parses one line.
func grantsOf(line string, number int) ([]grant, error) {
	fields, err := fieldsOf(line)
	switch {
	case err != nil:
		return nil, err
	case len(fields) == 0:
		return nil, nil
	case len(fields) < 3:
		return nil, fmt.Errorf("%w: %d fields, want a principal, actions, and what they are on", wakebell.ErrInvalid, len(fields))
	}
	var may []Action
	for action := range strings.SplitSeq(fields[1], ",") {
		if action == "*" {
			may = append(may, actions...)
		} else {
			may = append(may, Action(action))
		}
	}
	var grants []grant
	for _, what := range fields[2:] {
		kind, pattern, ok := strings.Cut(what, ":")
		kinds := []Kind{Kind(kind)}
		switch {
		case what == "*":
			kinds, pattern = rightKinds, "*"
		case !ok || !slices.Contains(rightKinds, Kind(kind)):
			return nil, fmt.Errorf("%w: %q, want * or one of %s with a pattern behind its colon", wakebell.ErrInvalid, what, listed("", withColon()))
		}
		for _, kind := range kinds {
			g := grant{principal: fields[0], actions: may, kind: kind, pattern: pattern, line: number}
			if err := g.validate(); err != nil {
				return nil, err
			}
			grants = append(grants, g)
		}
	}
	return grants, nil
}

func withColon() []string {
	all := make([]string, len(rightKinds))
	for i, kind := range rightKinds {
		all[i] = string(kind) + ":"
	}
	return all
}

// fieldsOf splits a line into its fields, without quotes and comment.
func fieldsOf(line string) (fields []string, err error) {
	for rest := strings.TrimSpace(line); rest != "" && rest[0] != '#'; rest = strings.TrimLeft(rest, " \t") {
		if rest[0] != '"' {
			end := strings.IndexAny(rest+" ", " \t")
			fields, rest = append(fields, rest[:end]), rest[end:]
			continue
		}
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return nil, fmt.Errorf("%w: a quote without its end", wakebell.ErrInvalid)
		}
		field, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, fmt.Errorf("%w: %s is not quoted text", wakebell.ErrInvalid, quoted)
		}
		fields, rest = append(fields, field), rest[len(quoted):]
		if rest != "" && !strings.ContainsAny(rest[:1], " \t") {
			return nil, fmt.Errorf("%w: text behind the quote of %s", wakebell.ErrInvalid, quoted)
		}
	}
	return fields, nil
}
