// Package web is the small HTML pages that mailed links lead to. They work without JavaScript.
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
	NewPassword bool   // the form may set a password, and does not ask for the current one alone
	Password    string // what the form calls the password
	Button      string // without one there is no form
}

// ResetPassword is the form as it is first shown.
func ResetPassword(minPassword int) Page {
	return Page{
		Title: "A new password", NewPassword: true, Button: "Set it",
		Password: fmt.Sprintf("New password, at least %d characters", minPassword),
	}
}

// VerifyEmail is the form as it is first shown.
var VerifyEmail = Page{
	Title:    "Confirm your e-mail address",
	Text:     "If it was you who signed up with it.",
	Password: "The password that you signed up with",
	Button:   "Confirm",
}

// NoDashboard stands in the dashboard's place in a program that was built without it.
var NoDashboard = Page{
	Title: "The dashboard is missing",
	Text: "This server was built without Node. Install Node 20 (20.19 or later) or 22.12 or newer, run make build once " +
		"more, and start the server again. The API works as it is; /docs explains it.",
}

// Sandbox is the form that makes a sandbox, which takes changes for some days, for whoever has an address. It asks for
// a name unless it is known.
func Sandbox(email string, nameKnown bool, days, minPassword int) Page {
	return Page{
		Title:       "Your sandbox",
		AsksName:    !nameKnown,
		NewPassword: true,
		Button:      "Make the sandbox",
		Password:    fmt.Sprintf("Password, at least %d characters", minPassword),
		Text: fmt.Sprintf(
			"A sandbox is a place of your own to try feature flags in, with examples to begin with. It takes changes for %d "+
				"days. "+
				"It belongs to the account of %s: if you have that account, enter its password; if not, choose one, and the "+
				"account is made.",
			days,
			email,
		),
	}
}

// SandboxMade is what is shown once the sandbox is there.
func SandboxMade(email string) Page {
	return Page{
		Title: "Your sandbox is ready",
		Text: fmt.Sprintf("Sign in as %s with the password. Among your tenants it is the one that is called Sandbox.",
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
{{if .AsksName}}<label>Your name, where the account is new (you may leave it out)
<input name="name" autocomplete="name" maxlength="200"></label>
{{end}}{{if .NewPassword}}<label>{{.Password}}
<input type="password" name="newPassword" autocomplete="new-password" minlength="8" required autofocus></label>
{{else}}<label>{{.Password}}
<input type="password" name="password" autocomplete="current-password" required autofocus></label>{{end}}
<button>{{.Button}}</button>
</form>{{end}}
</main>
`))

// Form is what a submitted form says, and the token of the mailed link. The token stays in the page's address.
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

// Write answers with the page.
func (p Page) Write(w http.ResponseWriter, status int) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("Referrer-Policy", "no-referrer") // the address holds the token
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = pageTemplate.Execute(w, p)
}
