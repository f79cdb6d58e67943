package rest

import (
	"flagledger/commands"
	"flagledger/events"
)

// NewSegmentRule is a new rule of a segment in a request.
type NewSegmentRule struct {
	Name       string             `json:"name,omitempty" maxLength:"200" example:"staff"`
	Conditions []NewConditionBody `json:"conditions" maxItems:"50" doc:"All must hold; a rule without conditions matches everyone"`
}

// SegmentRuleChange is a rule of a segment in a request that may exist already.
type SegmentRuleChange struct {
	ID *string `json:"id,omitempty" nullable:"true" doc:"The id of an existing rule; a rule without it is new"`
	NewSegmentRule
}

func (r NewSegmentRule) rule() commands.NewRule {
	return commands.NewRule{NewID: commands.NewID(), Name: r.Name, Conditions: SentConditions(r.Conditions)}
}

func (r SegmentRuleChange) rule() commands.NewRule {
	rule := r.NewSegmentRule.rule()
	if r.ID != nil {
		rule.ID = new(events.CanonicalID(*r.ID))
	}
	return rule
}

// SentSegmentRules converts the rules of a body for a command; nil stays nil.
func SentSegmentRules[R interface{ rule() commands.NewRule }](sent []R) []commands.NewRule {
	if sent == nil {
		return nil
	}
	list := make([]commands.NewRule, min(len(sent), commands.MaxRules+1)) // one too many is refused
	for i := range list {
		list[i] = sent[i].rule()
	}
	return list
}
