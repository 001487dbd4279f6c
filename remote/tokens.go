package remote

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
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

// tokenOwner is whose a token is, and the certificate it is good with.
type tokenOwner struct {
	name        string
	certificate string // empty: any, and none
}

type tokenOwners map[tokenHash]tokenOwner

func owners(tokens, certificates map[string]string) *tokenOwners {
	hashed := make(tokenOwners, len(tokens))
	for token, owner := range tokens {
		hashed[sha256.Sum256([]byte(token))] = tokenOwner{owner, certificates[token]}
	}
	return &hashed
}

const (
	byName        = "cn:"
	byFingerprint = "sha256:"
)

// checkCertificates checks what tokens are bound to.
func checkCertificates(tokens, certificates map[string]string, asked bool) error {
	var errs []error
	for token, certificate := range certificates {
		_, known := tokens[token]
		digits, printed := strings.CutPrefix(certificate, byFingerprint)
		bytes, err := hex.DecodeString(digits)
		name, named := strings.CutPrefix(certificate, byName)
		switch {
		case !known:
			errs = append(errs, invalid("TokenCertificates", "a token that is not among Tokens"))
		case !asked:
			errs = append(errs, invalid("TokenCertificates", "peers show no certificates: it needs TLS.ClientCAs"))
		case printed && err == nil && len(bytes) == sha256.Size, named && name != "":
		default:
			errs = append(errs, invalid("TokenCertificates", "%q, want cn:NAME or sha256: and 64 hexadecimal digits", certificate))
		}
	}
	return errors.Join(errs...)
}

// takes reports whether the token is good with a certificate; nil: none was
// shown.
func (o tokenOwner) takes(shown *x509.Certificate) bool {
	switch {
	case o.certificate == "":
		return true
	case shown == nil:
		return false
	}
	if name, ok := strings.CutPrefix(o.certificate, byName); ok {
		return shown.Subject.CommonName == name
	}
	digest := sha256.Sum256(shown.Raw)
	return strings.EqualFold(o.certificate, byFingerprint+hex.EncodeToString(digest[:]))
}

// names are the names of all owners.
func (o tokenOwners) names() []string {
	var names []string
	for _, owner := range o {
		names = append(names, owner.name)
	}
	return names
}

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
