package web

import (
	"net/url"
	"strings"
)

// segment is a part of a path between slashes: a text, or a variable that a verb may
// follow, as {id}:run. A text may have a verb too, as timers:batch.
type segment struct {
	text     string
	variable string // empty: it is the text
	verb     string // with its colon; empty: none
}

func segmentsOf(pattern string) (all []segment) {
	for part := range strings.SplitSeq(strings.TrimPrefix(pattern, "/"), "/") {
		s := segment{text: part}
		if name, verb, ok := strings.Cut(part, "}"); ok {
			s = segment{variable: strings.TrimPrefix(name, "{"), verb: verb}
		}
		all = append(all, s)
	}
	return all
}

func tableOf(all []route) []*route {
	table := make([]*route, len(all))
	for i := range all {
		table[i] = &all[i]
		table[i].segments = segmentsOf(all[i].pattern)
	}
	return table
}

// find returns the route of a request and the variables of its path, or the methods that
// its path has: none if no route has it. escaped is the path as it was sent: a colon or a
// slash that is escaped belongs to a name.
func find(method, escaped string) (r *route, path map[string]string, methods []string) {
	parts := strings.Split(strings.TrimPrefix(escaped, "/"), "/")
	for _, candidate := range routes {
		variables, ok := match(candidate.segments, parts)
		if !ok {
			continue
		}
		if candidate.method == method {
			if r == nil || more(candidate, r) {
				r, path = candidate, variables
			}
			continue
		}
		methods = append(methods, candidate.method)
	}
	return r, path, methods
}

// more reports whether a route is more specific than another one: it has a verb.
func more(a, b *route) bool {
	return a.segments[len(a.segments)-1].verb != "" && b.segments[len(b.segments)-1].verb == ""
}

func match(segments []segment, parts []string) (map[string]string, bool) {
	if len(segments) != len(parts) {
		return nil, false
	}
	variables := map[string]string{}
	for i, s := range segments {
		part := parts[i]
		if s.variable == "" {
			if part != s.text {
				return nil, false
			}
			continue
		}
		name, ok := strings.CutSuffix(part, s.verb)
		if !ok || name == "" {
			return nil, false
		}
		value, err := url.PathUnescape(name)
		if err != nil {
			return nil, false
		}
		variables[s.variable] = value
	}
	return variables, true
}
