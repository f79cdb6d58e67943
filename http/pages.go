package http

import (
	"errors"
	"html/template"
	"net/http"

	"flagledger/commands"
)

// The pages that mailed links lead to. The token of the link stays in the page's address, from which the page's form sends it back.

const (
	resetPage  = "/reset-password"
	verifyPage = "/verify-email"
)

const maxForm = 16 << 10 // bytes

// page is what a page shows: a form, or what came of it.
type page struct {
	Title, Text, Problem string
	New                  bool // asks for a new password, not for the one that there is
	Button               string
}

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
{{if .New}}<label>New password, at least 8 characters
<input type="password" name="newPassword" autocomplete="new-password" minlength="8" required autofocus></label>
{{else}}<label>The password that you signed up with
<input type="password" name="password" autocomplete="current-password" required autofocus></label>{{end}}
<button>{{.Button}}</button>
</form>{{end}}
</main>
`))

func (a *API) addPages() {
	forms := map[string]page{
		resetPage:  {Title: "A new password", New: true, Button: "Set it"},
		verifyPage: {Title: "Confirm your e-mail address", Text: "If it was you who signed up with it.", Button: "Confirm"},
	}
	for path, form := range forms {
		a.router.Get(path, func(w http.ResponseWriter, _ *http.Request) { form.write(w, http.StatusOK) })
	}
	a.router.Post(resetPage, func(w http.ResponseWriter, r *http.Request) {
		token, ok := formToken(w, r)
		if !ok {
			return
		}
		_, err := a.resetPassword(r.Context(), token, r.PostForm.Get("newPassword"))
		a.answerForm(w, r, forms[resetPage], "The password is set, and all sessions have ended. You can sign in with it now.", err)
	})
	a.router.Post(verifyPage, func(w http.ResponseWriter, r *http.Request) {
		if token, ok := formToken(w, r); ok {
			a.answerForm(w, r, forms[verifyPage], "The address is confirmed.", a.identity.VerifyEmail(r.Context(), token, r.PostForm.Get("password")))
		}
	})
}

// formToken reads a form, and the token of the link that led to it.
func formToken(w http.ResponseWriter, r *http.Request) (token string, ok bool) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		writeProblem(w, r, newProblem(http.StatusBadRequest, "the form cannot be read"))
		return "", false
	}
	return r.URL.Query().Get("token"), true
}

// answerForm shows what came of a form: done, or the form again with what is wrong.
func (a *API) answerForm(w http.ResponseWriter, r *http.Request, form page, done string, err error) {
	if err == nil {
		page{Title: form.Title, Text: done}.write(w, http.StatusOK)
		return
	}
	p := problemOf(r.Context(), err)
	switch refusal, ok := errors.AsType[*commands.Error](err); {
	case ok && refusal.Fields["token"] != "":
		form = page{Title: form.Title, Problem: "The link has been used or has expired. Have another one mailed."}
	case ok && refusal.Fields["newPassword"] != "":
		form.Problem = "The password " + refusal.Fields["newPassword"] + "."
	case ok && refusal.Fields["password"] != "":
		form.Problem = "The password " + refusal.Fields["password"] + "."
	default:
		form.Problem = "It cannot be done at this moment. Try again in a minute."
	}
	form.write(w, p.Status)
}

func (p page) write(w http.ResponseWriter, status int) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("Referrer-Policy", "no-referrer") // the address holds the token
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = pageTemplate.Execute(w, p)
}
