// Package web has the small HTML pages that mailed links open. They work without JavaScript.
package web

import (
	"fmt"
	"html/template"
	"net/http"
)

const maxForm = 16 << 10 // bytes

// Page is a form, or the result of one.
type Page struct {
	Title, Text, Problem string

	AsksName    bool
	NewPassword bool   // the form sets a password; otherwise it asks for the current one
	Password    string // label of the password
	Button      string // empty for a page without a form
}

// ResetPassword returns the form that sets a new password.
func ResetPassword(minPassword int) Page {
	return Page{
		Title: "Set a new password", NewPassword: true, Button: "Set password",
		Password: fmt.Sprintf("New password, at least %d characters", minPassword),
	}
}

// VerifyEmail is the form that verifies an address.
var VerifyEmail = Page{
	Title:    "Confirm your e-mail address",
	Text:     "Only continue if you signed up with this address.",
	Password: "Your password",
	Button:   "Confirm",
}

// NoDashboard replaces the dashboard in a program that was built without it.
var NoDashboard = Page{
	Title: "The dashboard is missing",
	Text: "This server was built without Node. Install Node 20 (20.19 or later) or 22.12 or newer, run make build " +
		"again, and restart the server. The API works; /docs explains it.",
}

// Sandbox returns the form that creates a sandbox, which accepts changes for some days. It asks for a name unless
// nameKnown.
func Sandbox(email string, nameKnown bool, days, minPassword int) Page {
	return Page{
		Title:       "Your sandbox",
		AsksName:    !nameKnown,
		NewPassword: true,
		Button:      "Create sandbox",
		Password:    fmt.Sprintf("Password, at least %d characters", minPassword),
		Text: fmt.Sprintf(
			"A sandbox lets you try feature flags, with examples to start from. It accepts changes for %d days. It belongs to "+
				"the account of %s. If you have that account, enter its password; if not, choose a password to create it.",
			days,
			email,
		),
	}
}

// SandboxReady returns the page that is shown after the sandbox was created.
func SandboxReady(email string) Page {
	return Page{
		Title: "Your sandbox is ready",
		Text: fmt.Sprintf("Sign in as %s with the password. The sandbox is the tenant with the name Sandbox.",
			email),
	}
}

var pageTemplate = template.Must(template.New("").Parse(`<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<style>
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 24rem; margin: 4rem auto; padding: 0 1rem; color-scheme: light
	dark }
input, button { font: inherit; width: 100%; box-sizing: border-box; padding: .5rem; margin: .25rem 0 1rem }
</style>
<main>
<h1>{{.Title}}</h1>
{{with .Text}}<p>{{.}}</p>{{end}}
{{with .Problem}}<p role="alert"><strong>{{.}}</strong></p>{{end}}
{{if .Button}}<form method="post">
{{if .AsksName}}<label>Your name, if the account is new (optional)
<input name="name" autocomplete="name" maxlength="200"></label>
{{end}}{{if .NewPassword}}<label>{{.Password}}
<input type="password" name="newPassword" autocomplete="new-password" minlength="8" required autofocus></label>
{{else}}<label>{{.Password}}
<input type="password" name="password" autocomplete="current-password" required autofocus></label>{{end}}
<button>{{.Button}}</button>
</form>{{end}}
</main>
`))

// Form holds a submitted form, and the token from the page's URL.
type Form struct{ Token, Name, Password, NewPassword string }

// ReadForm reads a form of at most 16 KiB.
func ReadForm(w http.ResponseWriter, r *http.Request) (Form, error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return Form{}, err
	}
	return Form{
		Token:       r.URL.Query().Get("token"),
		Name:        r.PostForm.Get("name"),
		Password:    r.PostForm.Get("password"),
		NewPassword: r.PostForm.Get("newPassword"),
	}, nil
}

// Write writes the page as a response.
func (p Page) Write(w http.ResponseWriter, status int) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("Referrer-Policy", "no-referrer") // the URL holds the token
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = pageTemplate.Execute(w, p)
}
