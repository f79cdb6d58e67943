package flags

import (
	"context"
	"net/http"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/http/rest"
)

type rulesOutput struct {
	rest.Changed
	ETag string `header:"ETag" doc:"The flag's version, for If-Match"`
	Body rest.RulesBody
}

func showRules(version events.Revision, rules []events.Rule, serve *events.Serve) *rulesOutput {
	out := &rulesOutput{
		ETag: rest.ETag(version),
		Body: rest.RulesBody{Rules: make([]rest.RuleBody, len(rules)), Fallthrough: rest.ShowFallthrough(serve)},
	}
	for i, r := range rules {
		out.Body.Rules[i] = rest.ShowRule(r)
	}
	return out
}

type newRulesBody struct {
	Rules       []rest.NewRuleBody    `json:"rules" maxItems:"100" doc:"The whole list in its order"`
	Fallthrough rest.FallthroughServe `json:"fallthrough,omitzero" doc:"May be sent back unchanged; its own PUT changes it"`
}

type fallthroughBody struct {
	Serve rest.FallthroughServe `json:"serve" doc:"Exactly one of variationId, value and rollout; null unsets it"`
}

type fallthroughOutput struct {
	rest.Changed
	ETag string `header:"ETag" doc:"The flag's version, for If-Match"`
	Body fallthroughBody
}

// setFallthrough returns the command that sets the fallthrough of the call's flag and environment.
func setFallthrough(ctx context.Context, in FlagChange, s rest.FallthroughServe) commands.SetFallthrough {
	cmd := s.Setting()
	cmd.FlagRef, cmd.Environment = in.ref(ctx), rest.PrincipalOf(ctx).Environment.EnvironmentRef
	return cmd
}

func (a *API) addRules() {
	const tag, path = "Rules", "/api/v1/flags/{flagKey}"
	get := rest.Operation("GET", path+"/rules", "get-rules", tag, "A flag's rules and fallthrough in an environment")
	get.Description = rest.HistoryText
	rest.Register(
		a.Core,
		rest.ReadFlagsAt,
		rest.WithExamples(get, nil, rest.ExampleRules(true)),
		func(ctx context.Context, in *FlagRead) (*rulesOutput, error) {
			if then, environment, asked, err := in.past(ctx, a); asked {
				out := showRules(then.Version, then.Rules[environment.ID], then.FallthroughIn(environment.ID))
				out.ETag = ""
				return out, err
			}
			p := rest.PrincipalOf(ctx)
			r, err := a.Queries.Rules(ctx, p.Tenant.ID(), p.Environment.ID, in.Key)
			if err != nil {
				return nil, err
			}
			return showRules(events.Revision(r.Version), r.Rules, r.Fallthrough), nil
		},
	)
	set := rest.Operation("PUT", path+"/rules", "set-rules", tag, "Replace a flag's rules in an environment")
	set.Description = "Replaces the rules of the environment; an empty list removes all rules. A rule that is sent with " +
		"its id preserves its rollout's buckets, also if it moves; a rule without id is new. A list that changes nothing " +
		"creates no event. The JSON of all rules of an environment is limited in size. " +
		growFlagText
	set.Errors = append(set.Errors, http.StatusConflict)
	set = rest.WithExamples(set, rest.ExampleRules(false), rest.ExampleRules(true))
	rest.Register(a.Core, rest.ChangeFlags, set, func(ctx context.Context, in *struct {
		FlagChange
		Body newRulesBody
	}) (*rulesOutput, error) {
		cmd := commands.SetRules{
			FlagRef:      in.ref(ctx),
			Environment:  rest.PrincipalOf(ctx).Environment.EnvironmentRef,
			Rules:        rest.SentRules(in.Body.Rules),
			Environments: rest.PrincipalOf(ctx).Tenant.Environments(),
		}
		cmd.Unusable = a.UnusableSegments(ctx, rest.PrincipalOf(ctx).Tenant, "", cmd.Rules)
		if in.Body.Fallthrough.Sent {
			cmd.Fallthrough = new(setFallthrough(ctx, in.FlagChange, in.Body.Fallthrough))
		}
		if cmd.Costly() {
			leave, err := a.EnterChanges(ctx)
			if err != nil {
				return nil, err
			}
			defer leave()
		}
		flag, done, err := rest.Do(ctx, a.Writer, cmd)
		if err != nil {
			return nil, err
		}
		out := showRules(flag.Version, flag.Rules[cmd.Environment.ID], flag.FallthroughIn(cmd.Environment.ID))
		out.Changed = rest.ChangeHeaders(done)
		return out, nil
	})
	set = rest.Operation("PUT", path+"/fallthrough", "set-fallthrough", tag,
		"Set what a flag serves in an environment if no rule matches")
	set.Description = growFlagText
	set.Errors = append(set.Errors, http.StatusConflict)
	exampleFallthrough := map[string]any{"serve": rest.ExampleRollout}
	rest.Register(a.Core, rest.ChangeFlags, rest.WithExamples(set, exampleFallthrough, exampleFallthrough),
		func(ctx context.Context, in *struct {
			FlagChange
			Body fallthroughBody
		}) (*fallthroughOutput, error) {
			cmd := setFallthrough(ctx, in.FlagChange, in.Body.Serve)
			flag, done, err := rest.Do(ctx, a.Writer, cmd)
			if err != nil {
				return nil, err
			}
			serve := rest.ShowFallthrough(flag.FallthroughIn(cmd.Environment.ID))
			return &fallthroughOutput{Changed: rest.ChangeHeaders(done), ETag: rest.ETag(flag.Version),
				Body: fallthroughBody{serve}}, nil
		})
}
