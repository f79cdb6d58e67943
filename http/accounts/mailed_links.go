package accounts

import (
	"errors"
	"maps"
	"net/http"

	"flagledger/commands"
	"flagledger/commands/people"
	"flagledger/http/rest"
	"flagledger/http/web"
)

// Paths of the pages that mailed links open.
const (
	ResetPage   = "/reset-password"
	VerifyPage  = "/verify-email"
	sandboxPage = "/sandbox"
)

// AddPages adds the pages that mailed links open.
func (a *API) AddPages() {
	reset := web.ResetPassword(commands.MinPassword)
	a.addPage(ResetPage, always(reset), func(r *http.Request, form web.Form) (web.Page, error) {
		_, err := people.ResetPassword(r.Context(), a.Reclaimer, a.Identity, rest.RequestBy(r.Context()), form.Token,
			form.NewPassword)
		return web.Page{
			Title: reset.Title,
			Text:  "The new password is set, and all sessions have ended. You can sign in now.",
		}, err
	})
	a.addPage(VerifyPage, always(web.VerifyEmail), func(r *http.Request, form web.Form) (web.Page, error) {
		return web.Page{
			Title: web.VerifyEmail.Title,
			Text:  "The address is confirmed.",
		}, a.verifyByLink(r.Context(), form.Token, form.Password)
	})
	a.addPage(sandboxPage, a.sandboxForm, a.openSandbox)
}

func always(page web.Page) func(*http.Request) (web.Page, error) {
	return func(*http.Request) (web.Page, error) { return page, nil }
}

// addPage adds a page with a form. submit returns the page to show on success. If show fails, its page must still have
// a title.
func (a *API) addPage(
	path string, show func(*http.Request) (web.Page, error), submit func(*http.Request, web.Form) (web.Page, error),
) {
	a.Router.Get(path, func(w http.ResponseWriter, r *http.Request) {
		page, err := show(r)
		writePage(w, r, page, err)
	})
	a.Router.Post(path, func(w http.ResponseWriter, r *http.Request) {
		form, err := web.ReadForm(w, r)
		if err != nil {
			rest.WriteProblem(w, r, rest.NewProblem(http.StatusBadRequest, "the form cannot be read"))
			return
		}
		page, err := show(r)
		if err == nil {
			var done web.Page
			if done, err = submit(r, form); err == nil {
				page = done
			}
		}
		writePage(w, r, page, err)
	})
}

func writePage(w http.ResponseWriter, r *http.Request, page web.Page, err error) {
	if err != nil {
		p := rest.ProblemOf(r.Context(), err)
		maps.Copy(w.Header(), p.GetHeaders())
		pageOf(page, err).Write(w, p.Status)
		return
	}
	page.Write(w, http.StatusOK)
}

// pageOf returns the form with an error, or only the error if the link no longer works.
func pageOf(page web.Page, err error) web.Page {
	refusal, ok := errors.AsType[*commands.Error](err)
	if !ok {
		refusal = &commands.Error{}
	}
	fields := refusal.Fields
	switch {
	case fields["token"] != "":
		return web.Page{Title: page.Title, Problem: "The link has been used or has expired. Request another one."}
	case fields["newPassword"] != "":
		page.Problem = "The password " + fields["newPassword"] + "."
	case fields["password"] != "":
		page.Problem = "The password " + fields["password"] + "."
	case fields["name"] != "":
		page.Problem = "The name " + fields["name"] + "."
	case refusal.Kind == commands.Conflict || refusal.PerDay > 0: // a retry would not help soon
		page.Problem = "Refused: " + refusal.Detail + "."
	default:
		page.Problem = "The service cannot do this right now. Try again in a minute."
	}
	return page
}
