// Package client has the commands for people. They are clients of the API, and know nothing of the service behind it.
package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"flagledger/cmd/flagledger/terminal"
)

// Commands are the commands for people.
type Commands struct {
	Login    loginCommand    `cmd:"" group:"For people" help:"Sign in, for the commands that call a service."`
	Logout   logoutCommand   `cmd:"" group:"For people" help:"End the session of the last login."`
	Flags    flagsCommand    `cmd:"" group:"For people" help:"Read and change flags."`
	Segments segmentsCommand `cmd:"" group:"For people" help:"Read and change segments, which the rules of flags share."`
	Keys     keysCommand     `cmd:"" group:"For people" help:"Manage the evaluation keys of applications."`
	Eval     evalCommand     `cmd:"" group:"For people" help:"Print what a flag serves to a user."`
}

// service says which service and tenant a command calls.
type service struct {
	Server string `placeholder:"URL" env:"FLAGLEDGER_URL" help:"Service; by default that of the last login, else http://127.0.0.1:8080."`
	Tenant string `placeholder:"ID" type:"id" env:"FLAGLEDGER_TENANT" help:"Tenant; by default the one that was active at login."`
	JSON   bool   `name:"json" help:"Print the answer of the API."`
}

// environment says which environment of a service a command is about.
type environment struct {
	service
	Env string `placeholder:"NAME" help:"Environment; production by default."`
}

// change is an environment in which a command changes something.
type change struct {
	environment
	Reason string `short:"m" placeholder:"REASON" help:"Why, for the history."`
}

const defaultServer = "http://127.0.0.1:8080"

// server returns the base URL of the service.
func (s service) server(signedIn session) (string, error) {
	server := strings.TrimRight(cmp.Or(s.Server, signedIn.Server, defaultServer), "/")
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return "", errors.New("--server must be a URL such as https://flags.example.com, without a password")
	}
	return server, nil
}

// open returns a client whose calls bear FLAGLEDGER_TOKEN, or else the token of the last login.
func (e environment) open(ctx context.Context, reason string) (*Client, error) {
	if strings.ContainsFunc(reason, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return nil, errors.New("-m must be one line without control characters")
	}
	signedIn, err := loadSession()
	if err != nil {
		return nil, err
	}
	server, err := e.server(signedIn)
	if err != nil {
		return nil, err
	}
	if token := os.Getenv("FLAGLEDGER_TOKEN"); token != "" {
		signedIn = session{Server: server, Token: token}
	}
	if signedIn.Token == "" || signedIn.Server != server {
		return nil, notSignedIn(server)
	}
	tenant := cmp.Or(e.Tenant, signedIn.Tenant)
	if tenant == "" && !isEvaluationKey(signedIn.Token) { // a key names its tenant
		begun, _, err := begin(ctx, server, signedIn.Token)
		if err != nil {
			return nil, fmt.Errorf("--tenant is not set, and FLAGLEDGER_TOKEN does not tell the tenant: %w", err)
		}
		tenant = begun.tenant()
	}
	headers := func(_ context.Context, r *http.Request) error {
		for name, value := range map[string]string{
			"X-Tenant-ID": tenant, "X-Environment": e.Env, "X-Change-Reason": reason,
		} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		return nil
	}
	return NewClient(server, WithHTTPClient(&bearer{session: signedIn}), WithRequestEditorFn(headers))
}

func isEvaluationKey(token string) bool {
	return strings.HasPrefix(token, "pk_") || strings.HasPrefix(token, "sk_")
}

// anonymous returns a client whose calls bear no token.
func anonymous(server string) (*Client, error) { return NewClient(server, WithHTTPClient(plain)) }

// plain follows no redirects: they could lead passwords and tokens to another host.
var plain = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport:     transport(),
}

func transport() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = time.Minute
	return t
}

// read returns the body of an answer, or the error that it reports.
func read(response *http.Response, err error) ([]byte, error) {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		address, _ := url.Parse(failed.URL)
		return nil, fmt.Errorf("%s://%s cannot be reached: %w", address.Scheme, address.Host, failed.Err)
	}
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the answer was cut off: %w", err)
	case response.StatusCode/100 == 2:
		return text, nil
	case response.StatusCode/100 == 3:
		return nil, fmt.Errorf("the service redirects to %s; set --server to the service's own address",
			response.Header.Get("Location"))
	}
	return nil, newRefusal(response, text)
}

// refusal is the error of a call that the service refused.
type refusal struct {
	status  int
	message string
}

// Error implements error.
func (r *refusal) Error() string { return r.message }

// newRefusal makes one sentence of a problem: what is wrong, and with which fields.
func newRefusal(response *http.Response, text []byte) error {
	status := response.StatusCode
	var p Problem
	if json.Unmarshal(text, &p) != nil || p.Detail == "" {
		return &refusal{status, fmt.Sprintf("the service answers %d %s", status, http.StatusText(status))}
	}
	message := p.Detail
	if status == http.StatusNotFound {
		message += ": " + response.Request.URL.Path
	}
	if p.Errors != nil {
		var fields []string
		for _, field := range slices.Sorted(maps.Keys(*p.Errors)) {
			fields = append(fields, strings.Replace(field, "X-Change-Reason", "-m", 1)+" "+(*p.Errors)[field])
		}
		message += ": " + strings.Join(fields, "; ")
	}
	return &refusal{status, message}
}

// hasStatus reports whether err is a refusal with a status.
func hasStatus(err error, status int) bool {
	refused, ok := errors.AsType[*refusal](err)
	return ok && refused.status == status
}

// decode reads an answer.
func decode[T any](response *http.Response, err error) (answer T, text []byte, _ error) {
	text, err = read(response, err)
	if err != nil {
		return answer, nil, err
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return answer, nil, fmt.Errorf("the service answers with what is not its API: %w", err)
	}
	return answer, text, nil
}

// show prints an answer: as it is with --json, else as a table.
func (s service) show(text []byte, fill func(*terminal.Table)) error {
	if s.JSON {
		return terminal.PrintJSON(os.Stdout, text)
	}
	t := terminal.NewTable(os.Stdout)
	fill(t)
	return t.Flush()
}

// answer makes a call and prints its answer.
func answer[T any](
	ctx context.Context, e environment, reason string,
	call func(*Client) (*http.Response, error), fill func(*terminal.Table, T),
) error {
	api, err := e.open(ctx, reason)
	if err != nil {
		return err
	}
	value, text, err := decode[T](call(api))
	if err != nil {
		return err
	}
	return e.show(text, func(t *terminal.Table) { fill(t, value) })
}
