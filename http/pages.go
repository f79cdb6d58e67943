package http

import (
	"errors"
	"net/http"

	"flagledger/commands"
	"flagledger/http/web"
)

// The addresses of the pages that mailed links lead to.
const (
	resetPage   = "/reset-password"
	verifyPage  = "/verify-email"
	sandboxPage = "/sandbox"
)

func (a *API) addPages() {
	a.addPage(resetPage, web.ResetPassword, "The password is set, and all sessions have ended. You can sign in with it now.", func(r *http.Request, form web.Form) error {
		_, err := commands.ResetPassword(r.Context(), a.Writer, a.Identity, requestBy(r.Context()), form.Token, form.NewPassword)
		return err
	})
	a.addPage(verifyPage, web.VerifyEmail, "The address is confirmed.", func(r *http.Request, form web.Form) error {
		return a.verifyEmail(r.Context(), form.Token, form.Password)
	})
	a.addPage(sandboxPage, web.Sandbox, "Your sandbox is there. You can sign in with your address and the password now.", func(r *http.Request, form web.Form) error {
		return a.openSandbox(r.Context(), form.Token, form.NewPassword)
	})
}

// addPage adds a page with a form. done is what it says once submit has succeeded.
func (a *API) addPage(path string, page web.Page, done string, submit func(*http.Request, web.Form) error) {
	a.router.Get(path, func(w http.ResponseWriter, _ *http.Request) { page.Write(w, http.StatusOK) })
	a.router.Post(path, func(w http.ResponseWriter, r *http.Request) {
		form, err := web.ReadForm(w, r)
		if err != nil {
			writeProblem(w, r, newProblem(http.StatusBadRequest, "the form cannot be read"))
			return
		}
		if err := submit(r, form); err != nil {
			pageOf(page, err).Write(w, problemOf(r.Context(), err).Status)
			return
		}
		web.Page{Title: page.Title, Text: done}.Write(w, http.StatusOK)
	})
}

// pageOf is a form again with what is wrong, or without the form if its link no longer works.
func pageOf(page web.Page, err error) web.Page {
	fields := map[string]string{}
	if refusal, ok := errors.AsType[*commands.Error](err); ok {
		fields = refusal.Fields
	}
	switch {
	case fields["token"] != "":
		return web.Page{Title: page.Title, Problem: "The link has been used or has expired. Have another one mailed."}
	case fields["newPassword"] != "":
		page.Problem = "The password " + fields["newPassword"] + "."
	case fields["password"] != "":
		page.Problem = "The password " + fields["password"] + "."
	default:
		page.Problem = "It cannot be done at this moment. Try again in a minute."
	}
	return page
}
