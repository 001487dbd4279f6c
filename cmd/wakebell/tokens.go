package main

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
)

// anybody is the owner of a token that has none.
const anybody = "peers"

// tokensLimit bounds the size of a file of tokens, in bytes.
const tokensLimit = 1 << 20

// readTokens reads a file of tokens, their owners, and the certificates they are
// bound to: a line is owner:token or a token alone, and may go on with a space and
// the certificate that the token is valid with, as cn:NAME or sha256:FINGERPRINT.
// Or it is empty or, with # before it, a comment. Of a file that others may read
// it warns.
func readTokens(file string, warn func(string)) (tokens, certificates map[string]string, err error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, nil, fmt.Errorf("--token-file: %w", err)
	}
	if info.Size() > tokensLimit {
		return nil, nil, fmt.Errorf("--token-file: %s has %d bytes, more than %d", file, info.Size(), tokensLimit)
	}
	if info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		warn(fmt.Sprintf("--token-file: others than its owner have rights to %s (%v)", file, info.Mode().Perm()))
	}
	text, err := os.ReadFile(file)
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
			return nil, nil, fmt.Errorf("--token-file: line %d of %s is neither owner:token nor a token", number, file)
		}
		if _, twice := tokens[token]; twice {
			return nil, nil, fmt.Errorf("--token-file: line %d of %s has a token for the second time", number, file)
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

// readToken reads the one token that a client shows.
func readToken(file string, warn func(string)) (string, error) {
	tokens, _, err := readTokens(file, warn)
	if err != nil {
		return "", err
	}
	if len(tokens) > 1 {
		return "", fmt.Errorf("--token-file: %s has %d tokens, and a client shows one", file, len(tokens))
	}
	return slices.Collect(maps.Keys(tokens))[0], nil
}

// warner is what logs a warning of readTokens.
func warner(log *slog.Logger) func(string) {
	return func(text string) { log.Warn("the token file is open to others", "about", text) }
}
