package main

import (
	"fmt"
	"os"
	"strings"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Your shell: ${enum}."`
}

// Help says how to use the script.
func (completionCommand) Help() string {
	return `In ~/.bashrc or ~/.zshrc, write: source <(flagledger completion bash), with your shell's name.
In ~/.config/fish/config.fish, write: flagledger completion fish | source`
}

// Run prints a script by which the shell asks this program how a command line can go on; kongcompletion answers.
func (c completionCommand) Run() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	program = shellQuoted(program)
	// bash reads the command of -C as a line of its own.
	bash := "complete -o default -o bashdefault -C " + shellQuoted(program) + " flagledger\n"
	script := map[string]string{
		"bash": bash,
		"zsh":  "autoload -U +X bashcompinit && bashcompinit\n" + bash,
		"fish": `function __complete_flagledger
    set -lx COMP_LINE (commandline -cp)
    test -z (commandline -ct); and set COMP_LINE "$COMP_LINE "
    ` + program + `
end
complete -f -c flagledger -a '(__complete_flagledger)'
`,
	}[c.Shell]
	_, err = fmt.Print(script)
	return err
}

func shellQuoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
