package files

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
)

// anybody is the owner of tokens without a name.
const anybody = "peers"

// tokensLimit bounds the size of a token file, in bytes.
const tokensLimit = 1 << 20

// Tokens reads a token file: tokens with their owners and the certificates they
// are bound to. A line is owner:token or a token alone. A space and the certificate
// that the token is bound to can follow, as cn:NAME or sha256:FINGERPRINT. Empty
// lines and lines that begin with # are skipped. It warns if other users have
// access to the file.
func Tokens(file string, warn func(string)) (tokens, certificates map[string]string, err error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, nil, fmt.Errorf("--token-file: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		warn(fmt.Sprintf("--token-file: other users than the owner have access to %s (%v)", file, info.Mode().Perm()))
	}
	text, err := Read(file, tokensLimit)
	if err != nil {
		return nil, nil, fmt.Errorf("--token-file: %w", err)
	}
	number := 0
	tokens, certificates = map[string]string{}, map[string]string{}
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		owner, token, named := strings.Cut(line, ":")
		if !named || strings.Contains(owner, " ") && !strings.HasSuffix(owner, " ") {
			owner, token = anybody, line
		}
		token, certificate, bound := strings.Cut(strings.TrimSpace(token), " ")
		owner, certificate = strings.TrimSpace(owner), strings.TrimSpace(certificate)
		if owner == "" || token == "" {
			return nil, nil, fmt.Errorf("--token-file: line %d of %s: want owner:token or a token", number, file)
		}
		if _, twice := tokens[token]; twice {
			return nil, nil, fmt.Errorf("--token-file: line %d of %s: duplicate token", number, file)
		}
		tokens[token] = owner
		if bound {
			certificates[token] = certificate
		}
	}
	if len(tokens) == 0 {
		return nil, nil, fmt.Errorf("--token-file: no token in %s", file)
	}
	return tokens, certificates, nil
}

// Token reads the token of a client.
func Token(file string, warn func(string)) (string, error) {
	tokens, _, err := Tokens(file, warn)
	if err != nil {
		return "", err
	}
	if len(tokens) > 1 {
		return "", fmt.Errorf("--token-file: %s has %d tokens, want one for a client", file, len(tokens))
	}
	return slices.Collect(maps.Keys(tokens))[0], nil
}
