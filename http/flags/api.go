// Package flags serves flags and projects: their variations, rules, history, earlier states and usage.
package flags

import (
	"time"

	"flagledger/http/rest"
)

// API serves flags and projects.
type API struct {
	*rest.Core
	StaleAfter time.Duration
}

// New returns the operations of a core. A flag is unused or settled after a time without evaluation or change.
func New(core *rest.Core, staleAfter time.Duration) *API { return &API{core, staleAfter} }

// AddOperations adds the operations to the OpenAPI document and its router.
func (a *API) AddOperations() {
	a.addProjects()
	a.addFlags()
	a.addProjectFlags()
	a.addTags()
	a.addVariations()
	a.addRules()
	a.addPrerequisites()
	a.addHistory()
	a.addVersions()
	a.addRevert()
	a.addDependents()
	a.addFlagMetrics()
	a.addUsage()
}
