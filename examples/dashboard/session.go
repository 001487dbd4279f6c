package main

import (
	"crypto/rand"
	"net/http"
	"sync"

	"github.com/wakebell/wakebell/dashboard"
)

// roles are the users of this example. Yours are in your user database, and have
// passwords.
var roles = map[string]dashboard.Role{"otto": dashboard.RoleOperator, "vera": dashboard.RoleViewer}

// sessions maps the cookie of a browser to its user.
var sessions sync.Map

func login(w http.ResponseWriter, r *http.Request) {
	user := r.PostFormValue("user")
	if roles[user] == dashboard.RoleNone {
		http.Error(w, "no such user", http.StatusUnauthorized)
		return
	}
	session := rand.Text()
	sessions.Store(session, user)
	http.SetCookie(w, &http.Cookie{Name: "session", Value: session, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
	http.Redirect(w, r, "/admin/wakebell/", http.StatusSeeOther)
}

// authorize tells the dashboard who sent a request.
func authorize(r *http.Request) (dashboard.Principal, dashboard.Role, error) {
	cookie, err := r.Cookie("session")
	if err != nil {
		return "", dashboard.RoleNone, dashboard.ErrUnauthenticated
	}
	user, ok := sessions.Load(cookie.Value)
	if !ok {
		return "", dashboard.RoleNone, dashboard.ErrUnauthenticated
	}
	name, _ := user.(string)
	return dashboard.Principal(name), roles[name], nil
}
