// Command esdbrun runs a command with one event store for tests that all of it shares, as a real EventStoreDB would be:
//
//	go run ./events/eventstore/esdbtest/esdbrun go test ./http
//
// It sets FLAGLEDGER_TEST_EVENTSTORE_URL and FLAGLEDGER_TEST_ENGINE. The exit code is the command's.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"flagledger/events/eventstore/esdbtest"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: esdbrun COMMAND [ARGUMENT...]")
		os.Exit(2)
	}
	server := esdbtest.New(process{})
	command := exec.CommandContext(context.Background(), os.Args[1], os.Args[2:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = append(os.Environ(), "FLAGLEDGER_TEST_ENGINE=eventstore", "FLAGLEDGER_TEST_EVENTSTORE_URL="+server.URL())
	err := command.Run()
	server.Stop()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		os.Exit(ended.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "esdbrun:", err)
		os.Exit(1)
	}
}

// process stands in for the test that a server belongs to.
type process struct{ testing.TB }

// Helper implements testing.TB.
func (process) Helper() {}

// Cleanup implements testing.TB. The server ends with the process.
func (process) Cleanup(func()) {}

// Errorf implements testing.TB.
func (process) Errorf(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
	os.Exit(1)
}
