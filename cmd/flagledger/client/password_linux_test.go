package client_test

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/tooltest"
)

// openTerminal returns both ends of a terminal: the person's and the program's.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	tooltest.Require(t, "a terminal", err)
	t.Cleanup(func() { _ = person.Close() })
	fd := int(person.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Close() })
	return person, program
}

func echoes(t *testing.T, terminal *os.File) bool {
	t.Helper()
	state, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return state.Lflag&unix.ECHO != 0
}

func TestPasswordFromTheTerminalIsNotShown(t *testing.T) {
	t.Parallel()
	s := nodetest.Shared(t).In(t)
	me, email := newShell(t, s), nodetest.Address()
	for _, attempt := range []struct {
		typed []string
		code  int
		says  string
	}{
		{[]string{nodetest.Password, nodetest.Password + "?"}, 1, "the passwords differ"},
		{[]string{nodetest.Password, nodetest.Password}, 0, "signed in as"},
	} {
		person, program := openTerminal(t)
		c, screen := me.command("login", "--sign-up", email), &output{}
		c.Stdin, c.Stdout, c.Stderr = program, program, program
		go func() { _, _ = io.Copy(screen, person) }()
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		for i, line := range attempt.typed {
			prompt := []string{"Password for " + email + ": ", "The same again: "}[i]
			s.Eventually(prompt, func() bool { return strings.Contains(screen.String(), prompt) && !echoes(t, program) })
			if _, err := io.WriteString(person, line+"\n"); err != nil {
				t.Fatal(err)
			}
		}
		_ = c.Wait()
		s.Eventually(attempt.says, func() bool { return strings.Contains(screen.String(), attempt.says) })
		if c.ProcessState.ExitCode() != attempt.code || strings.Contains(screen.String(), nodetest.Password) || !echoes(t, program) {
			t.Errorf("it ended with %v and shows\n%s", c.ProcessState, screen)
		}
	}
}

func TestInterruptRestoresTheTerminal(t *testing.T) {
	t.Parallel()
	s := nodetest.Shared(t).In(t)
	person, program := openTerminal(t)
	c, screen := newShell(t, s).command("login", nodetest.Address()), &output{}
	c.Stdin, c.Stdout, c.Stderr = program, program, program
	go func() { _, _ = io.Copy(screen, person) }()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	s.Eventually("it asks", func() bool { return strings.Contains(screen.String(), "Password") && !echoes(t, program) })
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if c.ProcessState.ExitCode() != 1 || !echoes(t, program) {
		t.Errorf("it ended with %v; the terminal echoes: %v\n%s", c.ProcessState, echoes(t, program), screen)
	}
}
