package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"strconv"
	"strings"
	"unicode"
)

// page shows what waits. Everything in it comes from an agent, so the template
// escapes it, and visible shows what a browser would hide.
const page = `<!doctype html><meta charset="utf-8"><title>Approvals</title>{{if not .}}<meta http-equiv="refresh" content="2">{{end}}
<h1>{{len .}} waiting</h1>
{{range .}}<form method="post" action="/decide"><h2>{{.Tool}}</h2><p>in {{.Dir}}</p><pre>{{.Input}}</pre>
<input type="hidden" name="id" value="{{.ID}}"><input name="reason" placeholder="reason of a refusal">
<button name="verdict" value="approve">Approve</button> <button name="verdict" value="refuse">Refuse</button></form>{{end}}`

// row is one waiting call as the page has it.
type row struct{ ID, Tool, Input, Dir string }

// desk is where people decide:
//
//	GET /                   the page
//	GET /pending?wait=1     one line for each waiting call: id, tool, input; with wait,
//	                        not before there is one
//	POST /decide            id, verdict (approve or refuse), reason
//
// Each needs the token: as Bearer, or as the password of HTTP Basic, which browsers
// ask for.
func desk(q *queue, token string) http.Handler {
	mux := http.NewServeMux()
	show := template.Must(template.New("page").Parse(page))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; form-action 'self'; frame-ancestors 'none'")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		waiting, _ := q.list()
		show.Execute(w, rows(waiting))
	})
	mux.HandleFunc("GET /pending", func(w http.ResponseWriter, r *http.Request) {
		waiting, changed := q.list()
		for len(waiting) == 0 && r.FormValue("wait") != "" {
			select {
			case <-changed:
				waiting, changed = q.list()
			case <-r.Context().Done():
				return
			}
		}
		for _, c := range rows(waiting) {
			fmt.Fprintf(w, "%s\t%s\t%s\n", c.ID, c.Tool, c.Input)
		}
	})
	mux.HandleFunc("POST /decide", func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		d := decision{deny: r.PostFormValue("verdict") == "refuse", reason: r.PostFormValue("reason")}
		switch {
		case !d.deny && r.PostFormValue("verdict") != "approve":
			http.Error(w, "verdict is approve or refuse", http.StatusBadRequest)
		case !q.decide(r.PostFormValue("id"), d):
			http.Error(w, "no such call waits: it was decided, or its time is over", http.StatusGone)
		case strings.Contains(r.Header.Get("Accept"), "text/html"):
			http.Redirect(w, r, "/", http.StatusSeeOther)
		default:
			fmt.Fprintln(w, "decided")
		}
	})
	// A page of another site must not decide with a browser's remembered password.
	return local(authorized(token, http.NewCrossOriginProtection().Handler(mux)))
}

func rows(waiting []*pending) []row {
	out := make([]row, len(waiting))
	for i, p := range waiting {
		out[i] = row{ID: p.id, Tool: visible(p.event.Tool.Name), Input: visible(string(p.event.Tool.Input)), Dir: "an unknown folder"}
		if s := p.event.Session; s != nil && s.Cwd != "" {
			out[i].Dir = visible(s.Cwd)
		}
	}
	return out
}

// visible writes characters that aren't shown, such as those that turn the direction
// of writing, as escapes.
func visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == ' ' || unicode.IsGraphic(r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
	}
	return b.String()
}

// local refuses requests that name another host: a page that had its name resolved
// to this machine.
func local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "this is for the machine itself", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func authorized(token string, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if _, password, is := r.BasicAuth(); is {
			given = password
		}
		if got := sha256.Sum256([]byte(given)); subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="approvals"`)
			http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
