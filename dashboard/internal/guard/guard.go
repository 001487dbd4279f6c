// Package guard protects the pages of the dashboard: security headers, tokens
// against forged requests, requests from this machine only, and a limit of failed
// sign-ins.
package guard

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// policy permits scripts, styles and connections of the dashboard itself, and
// nothing inline.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// SetHeaders sets the headers that every answer has.
func SetHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	// With no-referrer, browsers would send "Origin: null" with a form.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
}

// Loopback reports whether a request comes from this machine and was addressed to
// it. The Host is checked because a page of another site can make its own name
// resolve to 127.0.0.1. A reverse proxy on this machine connects from it and may set any
// Host, so what it adds to the requests of others is refused.
func Loopback(r *http.Request) bool {
	if forwarded(r.Header) {
		return false
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() {
		return false
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.IsLoopback()
}

// forwarded reports whether a proxy sent a request for another client.
func forwarded(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(name, "X-Forwarded") {
			return true
		}
		switch name {
		case "Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Original-Forwarded-For", "X-Original-Host",
			"True-Client-Ip", "Cf-Connecting-Ip", "Fly-Client-Ip", "Tailscale-User-Login":
			return true
		}
	}
	return false
}

// Cookie is the name of the cookie with the token.
const Cookie = "wakebell_csrf"

// Field is the name of the form field with the token.
const Field = "csrf"

// Forgery protects against forged requests: by the origin that a browser reports,
// and by a token that is in a cookie and in the form. No state is stored, so several
// dashboards behind one address work.
type Forgery struct {
	origins *http.CrossOriginProtection
	path    string // of the cookie
}

// NewForgery returns a Forgery for a dashboard below path.
func NewForgery(path string, trusted []string) (*Forgery, error) {
	f := &Forgery{origins: http.NewCrossOriginProtection(), path: path + "/"}
	for _, origin := range trusted {
		if err := f.origins.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("trusted origin: %w", err)
		}
	}
	return f, nil
}

// CheckOrigin reports why a text is not an origin.
func CheckOrigin(origin string) error {
	return http.NewCrossOriginProtection().AddTrustedOrigin(origin)
}

// Token returns the token for the forms of an answer, and sets its cookie if the
// browser has none.
func (f *Forgery) Token(w http.ResponseWriter, r *http.Request) string {
	if c, err := r.Cookie(Cookie); err == nil && len(c.Value) == len(rand.Text()) {
		return c.Value
	}
	token := rand.Text()
	http.SetCookie(w, &http.Cookie{
		Name: Cookie, Value: token, Path: f.path, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: Encrypted(r),
	})
	return token
}

var errForged = errors.New("the form does not come from this dashboard, or is too old; open it again and repeat")

// Check returns an error for a forged request. The form must be parsed.
func (f *Forgery) Check(r *http.Request) error {
	if err := f.origins.Check(r); err != nil {
		return errForged
	}
	c, err := r.Cookie(Cookie)
	if err != nil || c.Value == "" || subtle.ConstantTimeCompare([]byte(c.Value), []byte(r.PostForm.Get(Field))) != 1 {
		return errForged
	}
	return nil
}

// Encrypted reports whether the browser uses TLS. The header of a proxy only decides
// about the attribute of cookies.
func Encrypted(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}
