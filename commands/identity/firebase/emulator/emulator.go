// Package emulator runs the Firebase auth emulator for tests: only the auth server of npm's firebase-tools, which needs
// no Java.
package emulator

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"flagledger/commands/tooltest"
)

//go:embed testdata/package.json testdata/package-lock.json testdata/serve.js
var files embed.FS

// Project is the id of the emulator's project, which all tests share.
const Project = "demo-flagledger"

const startTakes = 3 * time.Minute // at most, on a busy machine

// Emulator is a running emulator. It stops with the test process.
type Emulator struct {
	Host string // host and port, for FIREBASE_AUTH_EMULATOR_HOST

	input io.Closer // its end stops the emulator
}

const name = "firebase-emulator"

var start = sync.OnceValues(func() (*Emulator, error) {
	tools, err := fs.Sub(files, "testdata")
	if err != nil {
		return nil, err
	}
	folder, err := tooltest.Install(name, tools)
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(context.Background(), "node", filepath.Join(folder, "serve.js"), Project)
	command.Stderr = os.Stderr
	input, err := command.StdinPipe() // ends with this process, which stops the emulator
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	stuck := time.AfterFunc(startTakes, func() { _ = command.Process.Kill() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if port, ok := strings.CutPrefix(lines.Text(), "port "); ok {
			stuck.Stop()
			go func() { _, _ = io.Copy(io.Discard, out) }()
			e := &Emulator{Host: "127.0.0.1:" + port, input: input}
			return e, os.Setenv("FIREBASE_AUTH_EMULATOR_HOST", e.Host)
		}
	}
	return nil, fmt.Errorf("the emulator did not start: %w", errors.Join(lines.Err(), command.Wait()))
})

// Start returns the emulator of this process. It installs it if necessary and sets the environment variable by which
// the Admin SDK finds it. If npm cannot be reached, the test is skipped, which `make test` reports at its end, or fails
// in CI.
func Start(t testing.TB) *Emulator {
	t.Helper()
	e, err := start()
	tooltest.Check(t, name, err)
	return e
}

// Code returns the oobCode of the newest link that was mailed to an address. requestType is PASSWORD_RESET or
// VERIFY_EMAIL. It waits until the code differs from last.
func (e *Emulator) Code(t testing.TB, email, requestType, last string) string {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for time.Now().Before(deadline) {
		var sent struct {
			OOBCodes []struct{ Email, RequestType, OOBCode string } `json:"oobCodes"`
		}
		e.Call(t, "GET", "/emulator/v1/projects/"+Project+"/oobCodes", nil, &sent)
		found := ""
		for _, code := range sent.OOBCodes {
			if strings.EqualFold(code.Email, email) && code.RequestType == requestType {
				found = code.OOBCode
			}
		}
		if found != "" && found != last {
			return found
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("no link was mailed to %s", email)
	return ""
}

// Protect switches the protection against enumeration of addresses, which also changes the error codes.
func (e *Emulator) Protect(t testing.TB, on bool) {
	t.Helper()
	e.Call(t, "PATCH", "/emulator/v1/projects/"+Project+"/config",
		map[string]any{"emailPrivacyConfig": map[string]bool{"enableImprovedEmailPrivacy": on}}, nil)
}

// Update changes an account as an operator can, such as {"disableUser": true}.
func (e *Emulator) Update(t testing.TB, userID string, fields map[string]any) {
	t.Helper()
	fields["localId"] = userID
	e.Call(t, "POST", "/identitytoolkit.googleapis.com/v1/projects/"+Project+"/accounts:update", fields, nil)
}

// Federated signs a person in with a provider such as google.com, and returns the ID token.
func (e *Emulator) Federated(t testing.TB, provider, email string) string {
	t.Helper()
	identity, err := json.Marshal(
		map[string]any{
			"sub":            email,
			"email":          email,
			"email_verified": true,
			"name":           "Ada of " + provider,
			"screen_name":    "ada",
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{"id_token": {string(identity)}, "providerId": {provider}}
	if provider != "google.com" {
		form.Set("access_token", string(identity))
	}
	var in struct{ IDToken string }
	e.Call(t, "POST", "/identitytoolkit.googleapis.com/v1/accounts:signInWithIdp?key=any", map[string]any{
		"postBody": form.Encode(), "requestUri": "http://localhost", "returnSecureToken": true,
	}, &in)
	return in.IDToken
}

// Call makes a call as an operator and decodes the response.
func (e *Emulator) Call(t testing.TB, method, path string, body, answer any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+e.Host+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if !strings.Contains(path, "key=") {
		r.Header.Set("Authorization", "Bearer owner")
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answered, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, answered)
	}
	if err == nil && answer != nil {
		err = json.Unmarshal(answered, answer)
	}
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
}
