package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"golang.org/x/term"

	"flagledger/cmd/flagledger/terminal"
)

type loginCommand struct {
	service
	Email         string `arg:"" optional:"" help:"Address of the account."`
	SignUp        bool   `xor:"account" help:"Create the account first."`
	PasswordStdin bool   `xor:"secret" help:"Read the password from standard input, not from the terminal."`
	TokenStdin    bool   `xor:"secret,account" help:"Read a token from standard input, as people who sign in by Google have it."`
}

// Validate checks what kong cannot.
func (c loginCommand) Validate() error {
	if (c.Email == "") != c.TokenStdin {
		return errors.New("login takes either an address or --token-stdin")
	}
	return nil
}

// Run signs in and stores the session.
func (c loginCommand) Run(ctx context.Context) error {
	signedIn, err := loadSession()
	if err != nil {
		signedIn = session{} // this login replaces it
	}
	server, err := c.server(signedIn)
	if err != nil {
		return err
	}
	next := session{Server: server}
	if c.TokenStdin {
		next.Token, err = firstLine(os.Stdin, "token")
	} else {
		next.Token, next.RefreshToken, err = c.signIn(ctx, server)
	}
	if err != nil {
		return err
	}
	begun, text, err := begin(ctx, server, next.Token)
	if err != nil {
		return err
	}
	next.Email, next.Tenant = begun.Data.User.Email, cmp.Or(c.Tenant, begun.tenant())
	unlock, err := lockSession(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := next.save(); err != nil {
		return err
	}
	return c.show(text, func(t *terminal.Table) {
		t.Row("service", server)
		t.Row("signed in as", next.Email)
		t.Row("tenant", begun.name(next.Tenant))
	})
}

// signIn returns the tokens for an address and a password.
func (c loginCommand) signIn(ctx context.Context, server string) (token, refreshToken string, err error) {
	password, err := c.password(ctx)
	if err != nil {
		return "", "", err
	}
	client, err := anonymous(server)
	if err != nil {
		return "", "", err
	}
	if c.SignUp {
		if _, err := read(client.SignUp(ctx, SignUpBody{Email: &c.Email, Password: &password})); err != nil {
			return "", "", err
		}
	}
	tokens, _, err := decode[SessionBody](client.LegacySignIn(ctx, Credentials{Email: c.Email, Password: password}))
	return tokens.Token, tokens.RefreshToken, err
}

// begun is what the API answers to a person who begins to use it.
type begun struct{ BootstrapBody }

// begin tells the service that a person begins to use it with a token.
func begin(ctx context.Context, server, token string) (begun, []byte, error) {
	client, err := anonymous(server)
	if err != nil {
		return begun{}, nil, err
	}
	return decode[begun](client.LogIn(ctx, IDTokenBody{IdToken: token}))
}

// tenant returns the tenant that the person used last, or else their first.
func (b begun) tenant() string { return cmp.Or(b.Data.ActiveTenantId, b.Data.CanonicalTenantId) }

// name returns the name and the id of a tenant.
func (b begun) name(tenant string) string {
	for _, t := range b.Data.Tenants {
		if t.TenantId == tenant {
			return t.TenantName + " (" + tenant + ")"
		}
	}
	return tenant
}

// password reads the password, twice for a new account.
func (c loginCommand) password(ctx context.Context) (string, error) {
	if c.PasswordStdin {
		return firstLine(os.Stdin, "password")
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return "", errors.New("there is no terminal to ask for the password; use --password-stdin")
	}
	password, err := ask(ctx, "Password for "+c.Email+": ")
	if err == nil && c.SignUp {
		var again string
		if again, err = ask(ctx, "The same again: "); err == nil && again != password {
			err = errors.New("the passwords differ")
		}
	}
	return password, err
}

// ask reads a line from the terminal without showing it. An interrupt restores the terminal.
func ask(ctx context.Context, prompt string) (string, error) {
	fd := int(os.Stdin.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	fmt.Fprint(os.Stderr, prompt)
	defer fmt.Fprintln(os.Stderr)
	type answer struct {
		line []byte
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		line, err := term.ReadPassword(fd)
		answers <- answer{line, err}
	}()
	select {
	case a := <-answers:
		return string(a.line), a.err
	case <-ctx.Done():
		return "", errors.Join(context.Cause(ctx), term.Restore(fd, before))
	}
}

// firstLine reads a secret of one line.
func firstLine(r io.Reader, what string) (string, error) {
	text, err := io.ReadAll(io.LimitReader(r, 64<<10))
	if err != nil {
		return "", err
	}
	line := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if line == "" || strings.Contains(line, "\n") {
		return "", fmt.Errorf("standard input must have the %s, in one line", what)
	}
	return line, nil
}

type logoutCommand struct{}

// Run ends the session at the service, and removes it from the disk.
func (logoutCommand) Run(ctx context.Context) error {
	signedIn, err := loadSession()
	if err != nil {
		return err
	}
	if signedIn.Token == "" {
		return errNotSignedIn
	}
	client, err := NewClient(signedIn.Server, WithHTTPClient(&bearer{session: signedIn}))
	if err != nil {
		return err
	}
	_, err = read(client.LogOut(ctx))
	ended := errors.Is(err, errNotSignedIn) ||
		hasStatus(err, http.StatusUnauthorized) || hasStatus(err, http.StatusForbidden)
	if err != nil && !ended {
		return err
	}
	unlock, err := lockSession(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	path, err := sessionFile()
	if err != nil {
		return err
	}
	return os.Remove(path)
}
