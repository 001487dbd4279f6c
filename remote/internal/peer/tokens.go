package peer

import (
	"slices"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/remote/internal/access"
	"github.com/wakebell/wakebell/remote/internal/conn"
)

// setOwners replaces the owners of tokens, and logs operators without a token, which
// are probably misspelt.
func (g *Guard) setOwners(known *access.TokenOwners) {
	g.owners.Store(known)
	named, principals := known.Names(), map[string]bool{}
	for _, name := range named {
		principals[name] = true
	}
	g.principals.Store(&principals)
	if len(named) == 0 && g.Cfg.asksForCertificates() {
		return // owners are the names of certificates
	}
	for _, operator := range g.Cfg.Operators {
		if !slices.Contains(named, operator) {
			g.Log.Warn("an operator has no token", "operator", operator)
		}
	}
}

// SetTokens replaces the tokens. Connections with a removed token, or with a token
// that has another owner or is bound to another certificate now, end at once.
func (g *Guard) SetTokens(tokens, certificates map[string]string) error {
	if (len(tokens) == 0) != (len(*g.owners.Load()) == 0) {
		return argument.Invalid("Tokens", "whether peers need one is decided by Serve")
	}
	if err := access.CheckTokens(tokens); err != nil {
		return err
	}
	if err := access.CheckCertificates(tokens, certificates, g.Cfg.asksForCertificates()); err != nil {
		return err
	}
	before, known := *g.owners.Load(), access.Owners(tokens, certificates)
	g.setOwners(known)
	for _, all := range []*conn.Connections{g.Connections, g.Web} {
		all.CloseUnless(func(token access.TokenHash) bool {
			now, ok := (*known)[token]
			was := before[token]
			return ok && now.Name == was.Name && (now.Certificate == "" || now.Certificate == was.Certificate)
		})
	}
	return nil
}
