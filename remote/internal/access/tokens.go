package access

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/wakebell/wakebell/internal/argument"
)

const (
	minToken, maxToken = 16, 4096
	maxOwner           = 256
)

// CheckTokens returns the errors in the tokens of a configuration.
func CheckTokens(tokens map[string]string) error {
	var errs []error
	for token, owner := range tokens {
		errs = append(errs, CheckToken("Tokens", token))
		if owner == "" || len(owner) > maxOwner {
			errs = append(errs, argument.Invalid("Tokens", "an owner of %d bytes, want 1 to %d", len(owner), maxOwner))
		}
	}
	return errors.Join(errs...)
}

// CheckToken checks one token of a configuration field.
func CheckToken(field, token string) error {
	if len(token) < minToken || len(token) > maxToken {
		return argument.Invalid(field, "a token of %d bytes, want %d to %d", len(token), minToken, maxToken)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return argument.Invalid(field, "a token has a byte that is not printable ASCII")
	}
	return nil
}

// TokenHash is the SHA-256 of a token. A lookup by hash takes equally long for every
// wrong token.
type TokenHash [sha256.Size]byte

// tokenOwner is the owner of a token, and the certificate that the token is bound
// to.
type tokenOwner struct {
	Name        string
	Certificate string // empty: bound to none
}

// TokenOwners maps the hashes of tokens to their owners.
type TokenOwners map[TokenHash]tokenOwner

// Owners returns the owners of tokens, with the certificates that the tokens are
// bound to.
func Owners(tokens, certificates map[string]string) *TokenOwners {
	hashed := make(TokenOwners, len(tokens))
	for token, owner := range tokens {
		hashed[sha256.Sum256([]byte(token))] = tokenOwner{owner, certificates[token]}
	}
	return &hashed
}

const (
	byName        = "cn:"
	byFingerprint = "sha256:"
)

// CheckCertificates checks the certificates that tokens are bound to. asked is
// whether the node requests certificates.
func CheckCertificates(tokens, certificates map[string]string, asked bool) error {
	var errs []error
	for token, certificate := range certificates {
		_, known := tokens[token]
		digits, printed := strings.CutPrefix(certificate, byFingerprint)
		bytes, err := hex.DecodeString(digits)
		name, named := strings.CutPrefix(certificate, byName)
		switch {
		case !known:
			errs = append(errs, argument.Invalid("TokenCertificates", "the token is not in Tokens"))
		case !asked:
			errs = append(errs, argument.Invalid("TokenCertificates", "the node requests no certificates; set TLS.ClientCAs"))
		case printed && err == nil && len(bytes) == sha256.Size, named && name != "":
		default:
			errs = append(errs, argument.Invalid("TokenCertificates", "%q, want cn:NAME or sha256: and 64 hexadecimal digits", certificate))
		}
	}
	return errors.Join(errs...)
}

// Takes reports whether the token is valid with a client certificate. nil means that
// the client has none.
func (o tokenOwner) Takes(shown *x509.Certificate) bool {
	switch {
	case o.Certificate == "":
		return true
	case shown == nil:
		return false
	}
	if name, ok := strings.CutPrefix(o.Certificate, byName); ok {
		return shown.Subject.CommonName == name
	}
	digest := sha256.Sum256(shown.Raw)
	return strings.EqualFold(o.Certificate, byFingerprint+hex.EncodeToString(digest[:]))
}

// Names returns the names of all owners.
func (o TokenOwners) Names() []string {
	var names []string
	for _, owner := range o {
		names = append(names, owner.Name)
	}
	return names
}
