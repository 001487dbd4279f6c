package rights

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/wakebell/wakebell"
)

// Parse reads the text of a file of rights. A line grants:
//
//	# principal  actions          what
//	billing      schedule,read    topic:invoices.* topic:refunds
//	billing      handle           queue:mail
//	ops          *                *
//
// Fields stand between blanks; one with a blank in it is in double quotes, as a
// string of Go is. Actions are schedule, handle, read and operate with commas
// between them, or * for all. What they are on is a topic, queue, gate or schedule
// (a recurring one), a colon and a pattern; * alone is all names of all kinds. In a
// pattern * stands for any text, ? for any one character, and \ before one of them
// for itself. The principal, the owner of a token or the common name of a
// certificate, may be *: everybody. What begins with # is a comment.
//
// The error names every line that is wrong, and wraps wakebell.ErrInvalid.
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

// grantsOf reads one line.
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

// fieldsOf are the fields of a line, without quotes and comment.
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
			return nil, fmt.Errorf("%w: %s is no quoted text", wakebell.ErrInvalid, quoted)
		}
		fields, rest = append(fields, field), rest[len(quoted):]
		if rest != "" && !strings.ContainsAny(rest[:1], " \t") {
			return nil, fmt.Errorf("%w: text behind the quote of %s", wakebell.ErrInvalid, quoted)
		}
	}
	return fields, nil
}
