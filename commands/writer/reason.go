package writer

import (
	"slices"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/events/state"
)

// decideWithReason decides a command, and refuses a change of a flag that lacks a required reason.
func decideWithReason[S any](by By, cmd commands.Command[S], s S) ([]events.Fact, error) {
	facts, err := cmd.Decide(s)
	f, isFlag := any(&s).(*state.Flag)
	if err != nil || !isFlag {
		return facts, err
	}
	for _, e := range by.ReasonRequired {
		if slices.ContainsFunc(facts, func(fact events.Fact) bool { return commands.NeedsReason(f, cmd.Stream(), fact, e) }) {
			return nil, commands.InvalidField("X-Change-Reason",
				"is required by the tenant's rules for changes of flags in "+e.Name)
		}
	}
	return facts, nil
}
