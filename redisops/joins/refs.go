package joins

import (
	"crypto/rand"
	"slices"
	"strings"

	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/joinref"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/wakebelltype"
)

// The headers of timers that have to do with joins.
const (
	// Header is that of the timer of a join: the name of the join.
	Header = wakebelltype.JoinHeader
	// PartHeader is that of a part.
	PartHeader = joinref.Header
)

// maxJoins is how many joins a part may have in its header. Of further ones its end is found
// by their audits.
const maxJoins = 16

// Ref names a join by its timer.
type Ref joinref.Ref

// NewName returns a name that no other join has.
func NewName() string { return rand.Text() }

// RefsOf returns the joins of a part by its headers, at most maxJoins. What cannot be read is
// left out.
func RefsOf(headers []envelope.Header) (refs []Ref) {
	for _, r := range joinref.Of(headers) {
		if len(refs) < maxJoins && layout.CheckLogical(r.Topic) == nil && layout.CheckID(r.ID) == nil {
			refs = append(refs, Ref(r))
		}
	}
	return refs
}

// nameOf returns the name of the join of a timer by its headers; empty: it has none.
func nameOf(headers []envelope.Header) string {
	for _, h := range headers {
		if h.Key == Header {
			return h.Value
		}
	}
	return ""
}

// Headers returns the headers of a timer that is a part of joins, or has the join with a name.
// The argument is not changed.
func Headers(headers []envelope.Header, name string, joins ...Ref) []envelope.Header {
	headers = slices.Clone(headers)
	if name != "" {
		headers = append(headers, envelope.Header{Key: Header, Value: name})
	}
	if len(joins) == 0 {
		return headers
	}
	texts := make([]string, len(joins))
	for i, r := range joins {
		texts[i] = joinref.Ref(r).String()
	}
	return append(headers, envelope.Header{Key: PartHeader, Value: strings.Join(texts, " ")})
}

// member returns a part as it is in the keys of its joins.
func member(p wakebelltype.Part) string {
	return layout.EscapeColons.Replace(p.Topic) + ":" + layout.EscapeColons.Replace(p.ID)
}

// partOf is the inverse of member.
func partOf(member string) (p wakebelltype.Part, ok bool) {
	topic, id, ok := strings.Cut(member, ":")
	p = wakebelltype.Part{Topic: layout.UnescapeColons.Replace(topic), ID: layout.UnescapeColons.Replace(id)}
	return p, ok && layout.CheckLogical(p.Topic) == nil && layout.CheckID(p.ID) == nil
}
