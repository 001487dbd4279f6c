package remote

import (
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"strings"
)

const (
	minToken, maxToken = 16, 4096
	maxOwner           = 256
)

func checkTokens(tokens map[string]string) error {
	var errs []error
	for token, owner := range tokens {
		errs = append(errs, checkToken("Tokens", token))
		if owner == "" || len(owner) > maxOwner {
			errs = append(errs, invalid("Tokens", "an owner of %d bytes, want 1 to %d", len(owner), maxOwner))
		}
	}
	return errors.Join(errs...)
}

func checkToken(field, token string) error {
	if len(token) < minToken || len(token) > maxToken {
		return invalid(field, "a token of %d bytes, want %d to %d", len(token), minToken, maxToken)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return invalid(field, "a token has a byte that is not printable ASCII")
	}
	return nil
}

// tokenHash stands for a token: a look-up by it takes as long for a wrong token as
// for one that is nearly right.
type tokenHash [sha256.Size]byte

type tokenOwners map[tokenHash]string

func owners(tokens map[string]string) *tokenOwners {
	hashed := make(tokenOwners, len(tokens))
	for token, owner := range tokens {
		hashed[sha256.Sum256([]byte(token))] = owner
	}
	return &hashed
}

// know takes who has which token, and tells of operators whom nobody can be: a
// name that is misspelt would else be found out when it is needed.
func (g *guard) know(known *tokenOwners) {
	g.owners.Store(known)
	named := slices.Collect(maps.Values(*known))
	if len(named) == 0 && g.cfg.TLS != nil && g.cfg.TLS.ClientCAs != nil {
		return // certificates name them
	}
	for _, operator := range g.cfg.Operators {
		if !slices.Contains(named, operator) {
			g.log.Warn("nobody is this operator: no token has the name", "operator", operator)
		}
	}
}

// SetTokens replaces Config.Tokens. Connections by tokens that are no longer
// among them end at once, with all that is under way on them. It does not turn
// the asking for tokens on or off. Errors: wakebell.ErrInvalid.
func (s *Server) SetTokens(tokens map[string]string) error {
	if (len(tokens) == 0) != (len(*s.guard.owners.Load()) == 0) {
		return invalid("Tokens", "whether peers need one is decided by Serve")
	}
	if err := checkTokens(tokens); err != nil {
		return err
	}
	known := owners(tokens)
	s.guard.know(known)
	s.guard.connections.closeUnless(*known)
	return nil
}
