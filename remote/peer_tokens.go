package remote

import "slices"

// know takes who has which token, and tells of operators whom nobody can be: a
// name that is misspelt would else be found out when it is needed.
func (g *guard) know(known *tokenOwners) {
	g.owners.Store(known)
	named := known.names()
	if len(named) == 0 && g.cfg.asksForCertificates() {
		return // certificates name them
	}
	for _, operator := range g.cfg.Operators {
		if !slices.Contains(named, operator) {
			g.log.Warn("nobody is this operator: no token has the name", "operator", operator)
		}
	}
}

// setTokens replaces who has which token. Connections by tokens that are no longer
// among them, or are bound to another certificate now, end at once.
func (g *guard) setTokens(tokens, certificates map[string]string) error {
	if (len(tokens) == 0) != (len(*g.owners.Load()) == 0) {
		return invalid("Tokens", "whether peers need one is decided by Serve")
	}
	if err := checkTokens(tokens); err != nil {
		return err
	}
	if err := checkCertificates(tokens, certificates, g.cfg.asksForCertificates()); err != nil {
		return err
	}
	before, known := *g.owners.Load(), owners(tokens, certificates)
	g.know(known)
	g.connections.closeUnless(func(token tokenHash) bool {
		now, ok := (*known)[token]
		return ok && (now.certificate == "" || now.certificate == before[token].certificate)
	})
	return nil
}
