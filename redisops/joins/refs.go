package joins

import (
	"crypto/rand"
	"net/url"
	"slices"
	"strings"

	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/wakebelltype"
)

// The headers of timers that have to do with joins.
const (
	// Header is that of the timer of a join: the name of the join.
	Header = wakebelltype.JoinHeader
	// PartHeader is that of a part: for each of its joins the name, topic and id, which are
	// escaped and have colons between them, with spaces between joins.
	PartHeader = "wakebell-part"
)

// maxJoins is how many joins a part may have in its header. Of further ones its end is found
// by their audits.
const maxJoins = 16

// Ref names a join by its timer, whose topic is a full one.
type Ref struct {
	Topic, ID string
	Name      string // tells it from an earlier join of its timer; empty: any
}

// NewName returns a name that no other join has.
func NewName() string { return rand.Text() }

func (r Ref) text() string {
	return url.QueryEscape(r.Name) + ":" + url.QueryEscape(r.Topic) + ":" + url.QueryEscape(r.ID)
}

// RefsOf returns the joins of a part by its headers, at most maxJoins. What cannot be read is
// left out.
func RefsOf(headers []envelope.Header) (refs []Ref) {
	i := slices.IndexFunc(headers, func(h envelope.Header) bool { return h.Key == PartHeader })
	if i < 0 {
		return nil
	}
	for text := range strings.SplitSeq(headers[i].Value, " ") {
		words := strings.Split(text, ":")
		if len(words) != 3 || len(refs) == maxJoins {
			continue
		}
		name, bad := url.QueryUnescape(words[0])
		topic, worse := url.QueryUnescape(words[1])
		id, worst := url.QueryUnescape(words[2])
		if bad == nil && worse == nil && worst == nil && name != "" && layout.CheckLogical(topic) == nil && layout.CheckID(id) == nil {
			refs = append(refs, Ref{topic, id, name})
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
		texts[i] = r.text()
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
