package tenants

import (
	"context"
	"crypto/rand"
	"time"

	"flagledger/commands"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/events/state"
)

// IssueKey runs a command that creates or rotates an evaluation key, and returns the key with its text. If a retried
// request lost the text of a server key, it rotates the key once more.
func IssueKey(
	ctx context.Context, w *writer.Writer, by writer.By, do writer.Runner[state.Tenant], ref commands.EvaluationKeyRef,
	now time.Time, command func(random string) commands.Command[state.Tenant],
) (key state.EvaluationKey, text string, done writer.Done, err error) {
	random := rand.Text()
	tenant, done, err := do(ctx, command(random))
	key = tenant.EvaluationKeys[ref.ID]
	if err == nil && done.Repeated && key.Kind == events.ServerKey {
		by.Once, random = nil, rand.Text()
		tenant, done, err = writer.Do(ctx, w, by,
			commands.RotateEvaluationKey{EvaluationKeyRef: ref, Random: random, Now: now})
		key = tenant.EvaluationKeys[ref.ID]
	}
	if key.Kind == events.BrowserKey { // also if a request is repeated
		return key, key.Key, done, err
	}
	return key, commands.KeyText(key.Kind, random), done, err
}
