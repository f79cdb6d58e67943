package client_test

import (
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

func TestPrerequisitesFromFile(t *testing.T) {
	t.Parallel()
	me := signUp(t, nodetest.Shared(t))
	for _, key := range []string{"payments", "maintenance", "checkout"} {
		me.run("flags", "create", key)
	}
	me.run("flags", "enable", "checkout")
	me.run("flags", "prerequisites", "checkout").prints("FLAG MUST")
	me.typing(`{"prerequisites":[{"flagKey":"maintenance","off":true},{"flagKey":"payments","serves":[{"value":true}]}]}`).
		run("flags", "prerequisites", "checkout", "--file=-", "-m", "sell").
		prints("FLAG MUST", "maintenance be off", "payments serve true")
	before := me.run("flags", "prerequisites", "checkout", "--json")
	me.typing(before.stdout).run("flags", "prerequisites", "checkout", "--file=-")
	if after := me.run("flags", "prerequisites", "checkout", "--json"); after.stdout != before.stdout {
		t.Errorf("the prerequisites %s became %s", before.stdout, after.stdout)
	}
	me.run("flags", "prerequisites", "checkout", "--env=development").prints("FLAG MUST")
	me.run("flags", "show", "payments").prints("REQUIRED BY ENVIRONMENT IT MUST", "checkout production serve true")
	me.run("flags", "explain", "checkout", "--key=u").prints("value false", "reason PREREQUISITE_FAILED",
		"requires payments", "prerequisite maintenance met must be off", "prerequisite payments unmet must serve true",
		"... environment disabled -")
	me.typing(`{"prerequisites":[{"flagKey":"checkout","off":true}]}`).
		try("flags", "prerequisites", "payments", "--file=-").refused(1, "prerequisites[0].flagKey")
	me.try("flags", "prerequisites", "missing").refused(1, "missing")
}
