package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/dashboard/internal/guard"
	"github.com/wakebell/wakebell/dashboard/internal/memo"
	"github.com/wakebell/wakebell/internal/usercode"
)

// request is a request of a signed-in principal.
type request struct {
	*http.Request
	w    http.ResponseWriter
	who  Principal
	role Role
	now  time.Time
	// read says how old the values of the page are; nil: it has none.
	read *memo.Oldest
}

// get returns a parameter of the address.
func (r *request) get(name string) string { return r.URL.Query().Get(name) }

// writes reports whether the principal may change something.
func (r *request) writes() bool { return r.role == RoleOperator }

type handlerFunc func(r *request)

// page is what a page shows.
type page struct {
	template string
	title    string
	section  string // of the navigation
	live     string // what the page watches, as parameters of /live; empty: nothing
	status   int
	data     any
}

// signedIn calls a handler with the principal of the request.
func (d *Dashboard) signedIn(h handlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		req := &request{Request: r, w: w, now: time.Now()}
		err := d.admit(req)
		switch {
		case errors.Is(err, errTooManyFailures):
			d.fail(req, http.StatusTooManyRequests, err)
		case errors.Is(err, ErrUnauthenticated):
			if d.cfg.Credentials != nil {
				w.Header().Set("WWW-Authenticate", `Basic realm="Wakebell", charset="UTF-8"`)
			}
			d.fail(req, http.StatusUnauthorized, ErrUnauthenticated)
		case errors.Is(err, errNotLoopback):
			d.fail(req, http.StatusForbidden, err)
		case err != nil:
			if !errors.Is(err, errNotAllowed) { // its text may be about the proxy's secrets
				d.log.WarnContext(r.Context(), "dashboard: request refused", "err", err)
			}
			d.fail(req, http.StatusForbidden, errNotAllowed)
		default:
			h(req)
		}
	}
}

// admit sets the principal and the role of a request, and returns why it may read nothing. Its
// role is RoleNone then, even if Authorize has returned another one beside the error.
func (d *Dashboard) admit(r *request) error {
	who, role, err := d.authorize(r)
	if !d.cfg.Writable {
		role = min(role, RoleViewer)
	}
	if err == nil && role < RoleViewer {
		err = errNotAllowed
	}
	if err != nil {
		role = RoleNone
	}
	r.who, r.role = who, role
	return err
}

var (
	errTooManyFailures = errors.New("too many wrong credentials from this address; the right ones are accepted")
	errNotAllowed      = errors.New("you may not use this dashboard")
	errReadOnly        = errors.New("this dashboard is read-only for you")
	errNotLoopback     = errors.New("without credentials the dashboard serves only http://localhost and loopback addresses on this machine, and nothing that a proxy forwards")
)

func (d *Dashboard) authorize(r *request) (Principal, Role, error) {
	switch {
	case d.cfg.Authorize != nil:
		return d.cfg.Authorize(r.Request)
	case d.cfg.Credentials == nil:
		if !guard.Loopback(r.Request) {
			return "", RoleNone, errNotLoopback
		}
		return "local", RoleOperator, nil
	}
	who, role, err := signIn(r.Request, d.cfg.Credentials)
	if err == nil || r.Header.Get("Authorization") == "" { // a browser's first request has none
		return who, role, err
	}
	if wait := d.failures.Fail(r.RemoteAddr, r.now); wait > 0 {
		r.w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
		return "", RoleNone, errTooManyFailures
	}
	d.log.WarnContext(r.Context(), "dashboard: sign-in failed", "address", r.RemoteAddr)
	return who, role, err
}

// page registers a page.
func (d *Dashboard) page(pattern string, read func(context.Context, *request) (page, error)) {
	d.mux.HandleFunc(pattern, d.signedIn(func(r *request) {
		limit := readLimit
		if d.pulse.State(r.Context(), pulseAge).Down {
			limit = outageLimit
		}
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		ctx, r.read = memo.Track(ctx)
		var p page
		err := usercode.Called("reading the page", func() (err error) {
			p, err = read(ctx, r)
			return err
		})
		if err != nil {
			d.fail(r, statusOf(err), err)
			return
		}
		d.render(r, p)
	}))
}

func (d *Dashboard) unknown(r *request) {
	d.fail(r, http.StatusNotFound, errors.New("page not found"))
}

// failure is the data of the page of an error.
type failure struct {
	Status int
	Text   string
	Advice string
}

func (d *Dashboard) fail(r *request, status int, err error) {
	f := failure{Status: status, Text: err.Error()}
	switch status {
	case http.StatusServiceUnavailable:
		f.Advice = "Reload the page in a few seconds; nothing is lost."
	case http.StatusUnauthorized:
		f.Advice = "Reload the page and sign in with a name and secret of the credentials file."
	case http.StatusNotFound:
		f.Advice = "It may have been handled, cancelled or deleted meanwhile. Search for it, or go back to the overview."
	case http.StatusInternalServerError:
		log := d.log.With("path", r.URL.Path, "err", err)
		if p, ok := errors.AsType[*usercode.Panic](err); ok {
			log = log.With("stack", string(p.Stack))
		}
		log.ErrorContext(r.Context(), "dashboard: page failed")
	}
	d.render(r, page{template: "failure", title: http.StatusText(status), status: status, data: f})
}

// statusOf returns the status code for an error of an operator.
func statusOf(err error) int {
	switch {
	case errors.Is(err, wakebell.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, wakebell.ErrInvalid):
		return http.StatusBadRequest
	case errors.Is(err, errReadOnly), errors.Is(err, wakebell.ErrForbidden), errors.Is(err, wakebell.ErrDenied):
		return http.StatusForbidden
	case errors.Is(err, wakebell.ErrTooLarge):
		return http.StatusRequestEntityTooLarge
	case wakebell.Retryable(err), errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

// link returns the address of a page with parameters, given as names and values.
func (d *Dashboard) link(path string, params ...string) string {
	query := url.Values{}
	for i := 0; i+1 < len(params); i += 2 {
		if params[i+1] != "" {
			query.Set(params[i], params[i+1])
		}
	}
	address := d.cfg.Path + "/" + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	return address
}

// required returns a parameter of the address that must be there.
func (r *request) required(name string) (string, error) {
	if v := r.get(name); v != "" {
		return v, nil
	}
	return "", fmt.Errorf("%w: %s: missing in the address", wakebell.ErrInvalid, name)
}
