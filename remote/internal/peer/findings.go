package peer

import (
	"regexp"
	"strconv"

	"github.com/wakebell/wakebell/wakebelltype"
)

// Peers receive findings without the addresses of Redis: a master of a Cluster is
// numbered in the order in which Diagnose lists it, and addresses in texts are cut.

// addresses matches the addresses of servers in errors and findings: what is dialled
// or looked up, IP addresses, and names with a port.
var addresses = regexp.MustCompile(
	`(?:dial|read|write|lookup) [a-z0-9]+ \S+(?:->\S+)?|lookup \S+(?: on \S+)?` +
		`|\[[0-9a-fA-F:.%a-z]+\](?::\d+)?|\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b` +
		`|\b[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){3,7}\b|\b[A-Za-z][A-Za-z0-9.-]*:\d{2,5}\b`)

const withheld = "(address withheld)"

// Findings removes addresses from the findings of one Diagnose, and logs the
// original text.
func (g *Guard) Findings(found []wakebelltype.Finding) []wakebelltype.Finding {
	numbers := map[string]string{"": ""}
	out := make([]wakebelltype.Finding, len(found))
	for i, f := range found {
		if _, known := numbers[f.Server]; !known {
			numbers[f.Server] = "master " + strconv.Itoa(len(numbers))
		}
		out[i] = f
		out[i].Server = numbers[f.Server]
		out[i].Found = addresses.ReplaceAllString(f.Found, withheld)
		out[i].Do = addresses.ReplaceAllString(f.Do, withheld)
		if out[i].Found == f.Found && out[i].Do == f.Do {
			continue
		}
		if skipped, ok := g.Lines.Allow("finding " + f.Check); ok {
			g.Log.Warn("a peer's diagnosis found a fault", "check", f.Check, "server", f.Server, "err", f.Found, "skipped", skipped)
		}
	}
	return out
}
