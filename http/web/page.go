// Package web is the small HTML pages that mailed links lead to. They work without JavaScript.
package web

import (
	"html/template"
	"net/http"
)

const maxForm = 16 << 10 // bytes

// Page is a form, or the result of one.
type Page struct {
	Title, Text, Problem string

	NewPassword bool   // the form asks for a new password, not for the current one
	Button      string // without one there is no form
}

// ResetPassword, VerifyEmail and Sandbox are the forms as they are first shown.
var (
	ResetPassword = Page{Title: "A new password", NewPassword: true, Button: "Set it"}
	Sandbox       = Page{
		Title: "Your sandbox", NewPassword: true, Button: "Open it",
		Text: "Choose a password for your account. If you have one with this address already, enter its password.",
	}
	VerifyEmail = Page{Title: "Confirm your e-mail address", Text: "If it was you who signed up with it.", Button: "Confirm"}
)

var pageTemplate = template.Must(template.New("").Parse(`<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<style>
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 24rem; margin: 4rem auto; padding: 0 1rem; color-scheme: light dark }
input, button { font: inherit; width: 100%; box-sizing: border-box; padding: .5rem; margin: .25rem 0 1rem }
</style>
<main>
<h1>{{.Title}}</h1>
{{with .Text}}<p>{{.}}</p>{{end}}
{{with .Problem}}<p role="alert"><strong>{{.}}</strong></p>{{end}}
{{if .Button}}<form method="post">
{{if .NewPassword}}<label>New password, at least 8 characters
<input type="password" name="newPassword" autocomplete="new-password" minlength="8" required autofocus></label>
{{else}}<label>The password that you signed up with
<input type="password" name="password" autocomplete="current-password" required autofocus></label>{{end}}
<button>{{.Button}}</button>
</form>{{end}}
</main>
`))

// Form is what a submitted form says, and the token of the mailed link. The token stays in the page's address.
type Form struct{ Token, Password, NewPassword string }

// ReadForm reads a form of at most 16 KiB.
func ReadForm(w http.ResponseWriter, r *http.Request) (Form, error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return Form{}, err
	}
	return Form{Token: r.URL.Query().Get("token"), Password: r.PostForm.Get("password"), NewPassword: r.PostForm.Get("newPassword")}, nil
}

// Write answers with the page.
func (p Page) Write(w http.ResponseWriter, status int) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("Referrer-Policy", "no-referrer") // the address holds the token
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = pageTemplate.Execute(w, p)
}
