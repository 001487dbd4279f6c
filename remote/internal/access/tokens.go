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

// CheckTokens reports what is wrong with the tokens of a configuration.
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

// CheckToken reports what is wrong with a token in a field of a configuration.
func CheckToken(field, token string) error {
	if len(token) < minToken || len(token) > maxToken {
		return argument.Invalid(field, "a token of %d bytes, want %d to %d", len(token), minToken, maxToken)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return argument.Invalid(field, "a token has a byte that is not printable ASCII")
	}
	return nil
}

// TokenHash stands for a token: a look-up by it takes as long for a wrong token as
// for one that is nearly right.
type TokenHash [sha256.Size]byte

// tokenOwner is whose a token is, and the certificate it is good with.
type tokenOwner struct {
	Name        string
	Certificate string // empty: any, and none
}

// TokenOwners are the owners of tokens, by the hashes of those.
type TokenOwners map[TokenHash]tokenOwner

// Owners returns the owners of tokens, with the certificates that the tokens are bound to.
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

// CheckCertificates checks what tokens are bound to.
func CheckCertificates(tokens, certificates map[string]string, asked bool) error {
	var errs []error
	for token, certificate := range certificates {
		_, known := tokens[token]
		digits, printed := strings.CutPrefix(certificate, byFingerprint)
		bytes, err := hex.DecodeString(digits)
		name, named := strings.CutPrefix(certificate, byName)
		switch {
		case !known:
			errs = append(errs, argument.Invalid("TokenCertificates", "a token that is not among Tokens"))
		case !asked:
			errs = append(errs, argument.Invalid("TokenCertificates", "peers show no certificates: it needs TLS.ClientCAs"))
		case printed && err == nil && len(bytes) == sha256.Size, named && name != "":
		default:
			errs = append(errs, argument.Invalid("TokenCertificates", "%q, want cn:NAME or sha256: and 64 hexadecimal digits", certificate))
		}
	}
	return errors.Join(errs...)
}

// Takes reports whether the token is good with a certificate; nil: none was
// shown.
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

// Names are the names of all owners.
func (o TokenOwners) Names() []string {
	var names []string
	for _, owner := range o {
		names = append(names, owner.Name)
	}
	return names
}
