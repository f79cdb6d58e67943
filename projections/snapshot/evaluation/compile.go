package evaluation

import (
	"flagledger/events"
	"flagledger/events/state"
)

// CompileIn compiles a flag's state of any time for one environment. The error is that of a rule or a fallthrough that
// cannot be compiled.
func CompileIn(s state.Flag, environmentID string) (*Flag, error) {
	f, err := Compile(&s, []events.EnvironmentRef{{ID: environmentID}}, nil)
	if err != nil {
		return nil, err
	}
	return &f, nil
}
