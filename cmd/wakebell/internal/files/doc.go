// Package files reads the files that flags name: certificates, keys and tokens, with
// bounds.
package files
