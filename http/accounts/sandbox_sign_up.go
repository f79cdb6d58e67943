package accounts

import (
	"context"
	"net/http"

	"flagledger/commands"
	"flagledger/commands/sandbox"
	"flagledger/commands/writer"
	"flagledger/http/rest"
	"flagledger/http/web"
)

// SandboxRequest is a request for a sandbox.
type SandboxRequest struct {
	Email string `json:"email" format:"email" maxLength:"254" example:"ada@example.com"`
	Name  string `json:"name,omitempty" maxLength:"200" doc:"The display name of a new account" example:"Ada Lovelace"`
}

func (a *API) addSandboxSignUp() {
	subscribe := rest.Operation("POST", rest.SubscribeRoute, "subscribe-to-sandbox", "Sandbox",
		"Send a link that creates an account and a sandbox")
	subscribe.Description = "The answer is the same for every address. The link opens /sandbox and is valid for one use " +
		"within three days. The number of mails is limited. A person with an account gets the sandbox in it by entering " +
		"the account's password."
	subscribe.DefaultStatus = http.StatusAccepted
	rest.Register(a.Core, rest.Access{Who: rest.Anyone}, subscribe, a.subscribeToSandbox)
}

func (a *API) subscribeToSandbox(ctx context.Context, in *struct{ Body SandboxRequest }) (*rest.SuccessOutput, error) {
	if err := rest.AddBodyErrors(ctx, sandbox.CheckRequest(in.Body.Email, in.Body.Name)); err != nil {
		return nil, err
	}
	address, _ := commands.ParseEmail(in.Body.Email)
	return rest.SuccessResponse(writer.Done{}), a.LimitMails(ctx, func() error {
		return a.Links.QueueSandboxLink(ctx, address, in.Body.Name, a.Now())
	})
}

// sandboxForm returns the page that a mailed link opens.
func (a *API) sandboxForm(r *http.Request) (web.Page, error) {
	request, err := a.SandboxSignUp.Request(r.Context(), r.URL.Query().Get("token"))
	return web.Sandbox(request.Email, request.Name != "", int(a.SandboxSignUp.Sandboxes.Active.Hours()/24),
		commands.MinPassword), err
}

// openSandbox creates the account and the sandbox for the owner of a link. It limits wrong passwords per link.
func (a *API) openSandbox(r *http.Request, form web.Form) (web.Page, error) {
	ctx := r.Context()
	request, err := a.SandboxSignUp.Request(ctx, form.Token)
	if err != nil {
		return web.Page{}, err
	}
	err = a.LimitAttempts(ctx, "link "+form.Token, func() error {
		return a.SandboxSignUp.Open(ctx, rest.RequestBy(ctx), form.Token, form.Name, form.NewPassword)
	})
	if commands.KindOf(err) == commands.Unauthenticated {
		err = commands.InvalidField("password", "is not the password of the account with this address")
	}
	return web.SandboxReady(request.Email), err
}
