package dashboard

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Bounds of a credential, in bytes.
const (
	minSecret       = 16
	maxSecret       = 4096
	credentialsFile = 1 << 20
)

// Credential is a name with a secret, by which a browser or program signs in.
type Credential struct {
	Name   Principal // 1 to 256 bytes, without a colon
	Role   Role      // RoleViewer or RoleOperator
	Secret string    // 16 to 4,096 bytes of printable ASCII without spaces
}

func (c Credential) validate() error {
	switch {
	case c.Name == "" || len(c.Name) > 256 || strings.ContainsRune(string(c.Name), ':'):
		return fmt.Errorf("name %q: want 1 to 256 bytes without a colon", string(c.Name))
	case c.Role != RoleViewer && c.Role != RoleOperator:
		return fmt.Errorf("role of %q: want viewer or operator", string(c.Name))
	case len(c.Secret) < minSecret || len(c.Secret) > maxSecret:
		return fmt.Errorf("secret of %q: %d bytes, want %d to %d", string(c.Name), len(c.Secret), minSecret, maxSecret)
	case strings.ContainsFunc(c.Secret, func(r rune) bool { return r <= ' ' || r > '~' }):
		return fmt.Errorf("secret of %q: want printable ASCII without spaces", string(c.Name))
	default:
		return nil
	}
}

// ReadCredentials reads credentials of the form name:role:secret, one a line, from a
// file of at most 1 MiB. The role is viewer or operator. Empty lines and lines that
// begin with # are skipped. Errors name the line, and never contain a secret.
func ReadCredentials(r io.Reader) ([]Credential, error) {
	text, err := io.ReadAll(io.LimitReader(r, credentialsFile+1))
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	if len(text) > credentialsFile {
		return nil, fmt.Errorf("credentials exceed %d bytes", credentialsFile)
	}
	var all []Credential
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		c, err := parseCredential(line)
		if err != nil {
			return nil, fmt.Errorf("line %d of the credentials: %w", number, err)
		}
		for _, other := range all {
			if other.Name == c.Name {
				return nil, fmt.Errorf("line %d of the credentials: duplicate name %q", number, string(c.Name))
			}
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, errors.New("no credential in the file")
	}
	return all, nil
}

func parseCredential(line string) (Credential, error) {
	parts := strings.SplitN(line, ":", 3)
	if len(parts) < 3 {
		return Credential{}, errors.New("want name:role:secret")
	}
	c := Credential{Name: Principal(strings.TrimSpace(parts[0])), Secret: strings.TrimSpace(parts[2])}
	switch strings.TrimSpace(parts[1]) {
	case "viewer":
		c.Role = RoleViewer
	case "operator":
		c.Role = RoleOperator
	}
	return c, c.validate()
}

// signIn returns the owner of the credentials of a request. It compares with all
// credentials in constant time.
func signIn(r *http.Request, all []Credential) (Principal, Role, error) {
	name, secret, basic := r.BasicAuth()
	if !basic {
		token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !bearer {
			return "", RoleNone, ErrUnauthenticated
		}
		secret = token
	}
	given := sha256.Sum256([]byte(secret))
	var found *Credential
	for i := range all {
		c := &all[i]
		want := sha256.Sum256([]byte(c.Secret))
		same := subtle.ConstantTimeCompare(given[:], want[:]) == 1
		if same && (!basic || string(c.Name) == name) {
			found = c
		}
	}
	if found == nil {
		return "", RoleNone, ErrUnauthenticated
	}
	return found.Name, found.Role, nil
}
