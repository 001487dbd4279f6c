// Package joinref reads and writes the header that a part has of its joins, and words what ended
// the wait of a join. Stores and pages share it.
package joinref

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Header is that of a part: for each of its joins the name, topic and id, which are escaped and
// have colons between them, with spaces between joins.
const Header = "wakebell-part"

// Ref names a join by its timer, whose topic is a full one.
type Ref struct {
	Topic, ID string
	Name      string // tells it from an earlier join of its timer; empty: any
}

// Of returns the joins of a part by its headers, without what cannot be read. Topics and ids
// are not checked.
func Of(headers []envelope.Header) (refs []Ref) {
	i := slices.IndexFunc(headers, func(h envelope.Header) bool { return h.Key == Header })
	if i < 0 {
		return nil
	}
	for text := range strings.SplitSeq(headers[i].Value, " ") {
		words := strings.Split(text, ":")
		if len(words) != 3 {
			continue
		}
		name, bad := url.QueryUnescape(words[0])
		topic, worse := url.QueryUnescape(words[1])
		id, worst := url.QueryUnescape(words[2])
		if bad == nil && worse == nil && worst == nil && name != "" {
			refs = append(refs, Ref{topic, id, name})
		}
	}
	return refs
}

// String returns the join as it is in the header.
func (r Ref) String() string {
	return url.QueryEscape(r.Name) + ":" + url.QueryEscape(r.Topic) + ":" + url.QueryEscape(r.ID)
}

// EndOfWait says what ended the wait of a join whose timer is due.
func EndOfWait(j wakebelltype.Join) string {
	if j.Complete() {
		return fmt.Sprintf("all %d parts of its join have ended", j.Parts)
	}
	return fmt.Sprintf("the time-out of its join came first: %d of %d parts have not ended", j.Parts-j.Ended(), j.Parts)
}
