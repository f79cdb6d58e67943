package audit

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"
	"golang.org/x/mod/sumdb/tlog"

	"flagledger/commands/keep/checkpoints"
	"flagledger/http/rest"
	"flagledger/queries"
)

const (
	auditKeyRoute         = auditRoute + "/key"
	auditCheckpointRoute  = auditRoute + "/checkpoint"
	auditProofRoute       = auditRoute + "/proof"
	auditConsistencyRoute = auditRoute + "/consistency"
)

// textOutput is a response in plain text.
type textOutput struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

func newText(text []byte) *textOutput { return &textOutput{"text/plain; charset=utf-8", text} }

// textResponse documents a textOutput.
func textResponse(description, example string) map[string]*huma.Response {
	return map[string]*huma.Response{"200": {Description: description, Content: map[string]*huma.MediaType{
		"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}, Example: example},
	}}}
}

// AuditProofBody proves that a fact is in the tree of a tenant.
type AuditProofBody struct {
	LeafIndex int64    `json:"leafIndex" doc:"The position of the fact among the tenant's facts, from 0" example:"1"`
	TreeSize  int64    `json:"treeSize" doc:"The number of facts in the tree" example:"3"`
	Leaf      string   `json:"leaf" doc:"The hash of the fact, in base64" example:"nY0jp4tCDJDjVpOHmzgwIcOXrd4kR0Qb/f6sfLOYUSk="`
	Hashes    []string `json:"hashes" nullable:"false" doc:"The audit path of RFC 6962, from the leaf to the root, in base64" example:"[\"ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs=\",\"Ln0sA6lQeuJl7PW1NWiFpTOTogKdJBOUmXJloaJa78Y=\"]"`
}

// AuditConsistencyBody proves that a tree begins with a smaller one.
type AuditConsistencyBody struct {
	From   int64    `json:"from" example:"2"`
	To     int64    `json:"to" example:"3"`
	Hashes []string `json:"hashes" nullable:"false" doc:"The consistency proof of RFC 6962, in base64" example:"[\"Ln0sA6lQeuJl7PW1NWiFpTOTogKdJBOUmXJloaJa78Y=\"]"`
}

type auditProofOutput struct{ Body AuditProofBody }

type auditConsistencyOutput struct{ Body AuditConsistencyBody }

// AuditTreeInput chooses the tree of a tenant.
type AuditTreeInput struct {
	rest.TenantInput
	Size int64 `query:"size" minimum:"1" doc:"The size of the tree, as in a checkpoint; the default is the current size"`
}

type auditProofInput struct {
	AuditTreeInput
	Event   string `query:"event" doc:"The id of the fact"`
	Flag    string `query:"flag" doc:"The key of a flag, in place of event"`
	Version int64  `query:"version" minimum:"1" doc:"The version of the flag that the fact created; required with flag"`
}

type auditConsistencyInput struct {
	AuditTreeInput
	From int64 `query:"from" required:"true" minimum:"1" doc:"The size of the smaller tree"`
}

const (
	exampleKey        = "flagledger+e75f0a28+AXQ0Z6tl9pvL9gL5M5wuSUNmD1MRpDIcJz9zYLkb4+Z2\n"
	exampleCheckpoint = "flagledger/0198c5a0-e0b7-7d42-8c19-4d5e6f708192\n3\nnY0jp4tCDJDjVpOHmzgwIcOXrd4kR0Qb/f6sfLOYUSk=\n\n" +
		"— flagledger 518KKHl0KrUO9nYyBqkR3oZgYqHbcHTyL8OTTZcOkRpVGSVP5dSPvUpdb5Mu5HGmhzBz9+GBp5kDGJvYHcWOsDU8cQk=\n"
)

const proofs = `The facts of a tenant are the leaves of a Merkle tree (RFC 6962), in the order of the log. ` + "`docs/audit.md`" + ` in the repository
describes what is hashed and how to verify it.`

func (a *API) addAuditProof() {
	op := rest.Operation("GET", auditKeyRoute, "get-audit-key", "Audit", "The key that verifies checkpoints")
	op.Description = "It is the same for all tenants, in the format of https://c2sp.org/signed-note."
	op.Responses = textResponse("The verifier key, in one line", exampleKey)
	rest.Register(a.Core, readAudit, op, func(ctx context.Context, _ *rest.TenantInput) (*textOutput, error) {
		key, err := a.Checkpoints.VerifierKey(ctx)
		return newText([]byte(key + "\n")), err
	})
	op = rest.Operation("GET", auditCheckpointRoute, "get-audit-checkpoint", "Audit",
		"A signed statement of the current trail")
	op.Description = proofs + ` A checkpoint holds the number of facts and the root of the tree, in the format of https://c2sp.org/tlog-checkpoint. Store it out
of reach of everyone who could alter the trail: it later proves that nothing was altered. The service stores all checkpoints and signs none that contradicts
an earlier one.`
	op.Responses = textResponse("The checkpoint", exampleCheckpoint)
	op.Errors = []int{http.StatusConflict}
	rest.Register(a.Core, readAudit, op, a.auditCheckpoint)
	op = rest.Operation("GET", auditProofRoute, "prove-audit-entry", "Audit", "Proof that a fact is in the trail")
	op.Description = proofs
	op.Errors = []int{http.StatusNotFound}
	rest.Register(a.Core, readAudit, op, a.proveAuditEntry)
	op = rest.Operation("GET", auditConsistencyRoute, "prove-audit-consistency", "Audit",
		"Proof that the trail begins with an earlier one")
	op.Description = proofs
	rest.Register(a.Core, readAudit, op, a.proveAuditConsistency)
}

func (a *API) auditCheckpoint(ctx context.Context, _ *rest.TenantInput) (*textOutput, error) {
	tenantID := rest.PrincipalOf(ctx).Tenant.ID()
	signed, err := a.Checkpoints.SignCurrent(ctx, tenantID, func() (checkpoints.Tree, int64, error) {
		tree, err := a.Queries.CurrentAuditTree(ctx, tenantID)
		if err != nil {
			return nil, 0, err
		}
		return tree, tree.Size, nil
	})
	return newText(signed), err
}

// auditTree returns the tenant's tree and the requested size.
func (a *API) auditTree(ctx context.Context, in AuditTreeInput) (*queries.AuditTree, int64, error) {
	tree, err := a.Queries.CurrentAuditTree(ctx, rest.PrincipalOf(ctx).Tenant.ID())
	if err != nil {
		return nil, 0, err
	}
	if in.Size > tree.Size {
		return nil, 0, rest.Invalid(map[string]string{"size": "is greater than the number of facts"})
	}
	if in.Size == 0 {
		return tree, tree.Size, nil
	}
	return tree, in.Size, nil
}

func (a *API) proveAuditEntry(ctx context.Context, in *auditProofInput) (*auditProofOutput, error) {
	if (in.Event == "") == (in.Flag == "") || (in.Flag == "") != (in.Version == 0) {
		return nil, rest.Invalid(map[string]string{"event": "is required, or flag and version in its place"})
	}
	tree, size, err := a.auditTree(ctx, in.AuditTreeInput)
	if err != nil {
		return nil, err
	}
	var n int64
	var leaf tlog.Hash
	if in.Event != "" {
		id, err := uuid.Parse(in.Event)
		if err != nil {
			return nil, rest.Invalid(map[string]string{"event": "must be a UUID"})
		}
		if n, leaf, err = tree.Entry(ctx, id.String()); err != nil {
			return nil, err
		}
	} else if n, leaf, err = tree.FlagEntry(ctx, in.Flag, in.Version); err != nil {
		return nil, err
	}
	if n >= size {
		return nil, rest.Invalid(map[string]string{"size": "is too small: the tree does not contain the fact"})
	}
	hashes, err := tree.ProveEntry(ctx, size, n)
	if err != nil {
		return nil, err
	}
	return &auditProofOutput{Body: AuditProofBody{n, size, leaf.String(), hashTexts(hashes)}}, nil
}

func (a *API) proveAuditConsistency(ctx context.Context, in *auditConsistencyInput) (*auditConsistencyOutput, error) {
	tree, size, err := a.auditTree(ctx, in.AuditTreeInput)
	if err != nil {
		return nil, err
	}
	if in.From > size {
		return nil, rest.Invalid(
			map[string]string{"from": "must not be greater than size, or the number of facts if size is not sent"},
		)
	}
	hashes, err := tree.ProveGrowth(ctx, size, in.From)
	if err != nil {
		return nil, err
	}
	return &auditConsistencyOutput{Body: AuditConsistencyBody{in.From, size, hashTexts(hashes)}}, nil
}

func hashTexts(hashes []tlog.Hash) []string {
	texts := make([]string, len(hashes))
	for i, h := range hashes {
		texts[i] = h.String()
	}
	return texts
}
