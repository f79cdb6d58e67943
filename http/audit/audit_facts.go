package audit

import (
	"context"
	"math"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/events/export"
	"flagledger/http/rest"
)

const auditFactsRoute = auditRoute + "/facts"

const exportedFacts = `{"format":"flagledger facts","version":1,"log":"0198c5a0-c1d2-7e3f-8a4b-5c6d7e8f9a0b 1/1","tenant":"0198c5a0-e0b7-7d42-8c19-4d5e6f708192","key":"flagledger+e75f0a28+AXQ0Z6tl9pvL9gL5M5wuSUNmD1MRpDIcJz9zYLkb4+Z2"}
{"stream":"flag-0198c5a0-e0b7-7d42-8c19-4d5e6f708192.new-checkout","revision":2,"id":"0198c5a1-9c51-7f3d-8b26-5e7d9f1a3b42","name":"flag.enabled","version":1,"recorded":"2026-03-14T15:09:26.535120Z","metadata":{"time":"2026-03-14T15:09:26.535Z","actor":{"kind":"user","id":"0198c5a0-d3c2-7e19-9a75-2b8f6c4d1e05"}},"data":{"environment":{"id":"0198c5a0-e0b7-7f00-8000-4d5e6f708193","name":"production"}}}
{"facts":1,"sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}
`

// exportFacts lets a tenant's admins export the facts of its trail. Machines may not.
var exportFacts = rest.Access{Who: rest.Admin}

type auditFactsInput struct {
	rest.TenantInput
	After int64 `query:"after" minimum:"-1" default:"-1" doc:"The position of the last fact that you have, to continue after it: the number of whole lines of facts minus one; -1 for all"`
}

func (a *API) addAuditFacts() {
	op := rest.Operation("GET", auditFactsRoute, "export-audit-facts", "Audit",
		"The facts of the trail as they are stored, for flagledger verify")
	op.Description = "The same file as `flagledger export-facts` writes, with one JSON object a line; `docs/audit.md` " +
		"in the repository describes it. With this file and a checkpoint, anyone can verify without the service that " +
		"nothing was altered. It contains no names and addresses of people. An export that was cut off, as a long one is, " +
		"continues with `after`, without the first line: append it to the whole lines that you have. The service reads " +
		"the earlier facts again for the SHA-256 in the last line."
	op.Responses = map[string]*huma.Response{"200": {Description: "The facts", Content: map[string]*huma.MediaType{
		exportFormats["ndjson"].media: {Schema: &huma.Schema{Type: huma.TypeString}, Example: exportedFacts},
	}}}
	rest.Register(a.Core, exportFacts, op, a.exportFacts)
}

func (a *API) exportFacts(ctx context.Context, in *auditFactsInput) (*exportOutput, error) {
	tenantID := rest.PrincipalOf(ctx).Tenant.ID()
	key, err := a.Checkpoints.VerifierKey(ctx)
	if err != nil {
		return nil, err
	}
	facts, err := a.Queries.AuditFacts(ctx, tenantID)
	if err != nil {
		return nil, err
	}
	if in.After >= facts.Total {
		return nil, rest.Invalid(map[string]string{"after": "is greater than the position of the last fact"})
	}
	have := in.After + 1
	p := rest.NewPieces(ctx)
	w, err := export.NewWriter(&p.Text, export.NewHeader(facts.LogID, tenantID, key))
	if err != nil {
		return nil, err
	}
	read := func() (bool, error) {
		most := int64(math.MaxInt64)
		if facts.Read() < have {
			most = have - facts.Read()
		}
		list, err := facts.Next(ctx, most)
		if err != nil {
			return false, err
		}
		for _, e := range list {
			if err := w.Add(e); err != nil {
				return false, err
			}
		}
		if err := w.Flush(); err != nil {
			return false, err
		}
		if have > 0 && facts.Read() <= have { // the caller already has these facts
			p.Text.Reset()
		}
		if facts.More() {
			return true, nil
		}
		_, err = w.End()
		return false, err
	}
	more, err := read()
	if err != nil {
		return nil, err
	}
	if more {
		p.Next = a.recheckAccess(ctx, exportFacts, rest.WithReadSlot(ctx, read))
	}
	return newExport(p, exportFormats["ndjson"].media, "facts.ndjson"), nil
}
