package segments

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/http/rest"
	"flagledger/queries"
)

type segmentMembersBody struct {
	List   string   `json:"list" enum:"included,excluded" example:"included"`
	Add    []string `json:"add,omitempty" nullable:"true" maxItems:"10000" example:"[\"user-42\"]"`
	Remove []string `json:"remove,omitempty" nullable:"true" maxItems:"10000" example:"[\"user-7\"]"`
}

type membersChangedBody struct {
	Added     int `json:"added" example:"1"`
	Removed   int `json:"removed" example:"1"`
	Unchanged int `json:"unchanged" doc:"Members to add that the list had, and to remove that it had not" example:"0"`
}

type membersOutput struct {
	rest.Changed
	ETag string `header:"ETag" doc:"The segment's version, for If-Match"`
	Body membersChangedBody
}

func (a *API) addMembers() {
	list := rest.Operation("GET", path+"/members", "list-segment-members", tag, "A list of a segment's members, in order")
	list.Description = historyText + " It is 409 for a private segment."
	list.Errors = []int{http.StatusConflict}
	rest.Register(a.Core, reading, rest.WithExamples(list, nil, []string{"user-42", "user-43"}),
		func(ctx context.Context, in *struct {
			SegmentRead
			rest.PageInput
			List string `query:"list" enum:"included,excluded" default:"included"`
		}) (*rest.ListOutput[string], error) {
			s, _, err := in.read(ctx, a)
			if err != nil {
				return nil, err
			}
			if err := errPrivate(s); err != nil {
				return nil, err
			}
			members := s.List(events.MemberList(in.List))
			page := queries.ListOf(members.List(in.Offset, in.Limit), queries.Page{})
			page.Total = members.Len()
			return rest.ListResponse(ctx, in.PageInput, page, nil, func(member string) string { return member })
		})
	change := rest.Operation("POST", path+"/members", "change-segment-members", tag,
		"Add members to a list of a segment, and remove others")
	change.Description = "A member is a targeting key. As `text/csv`, with one column and no header, the body adds members " +
		"to the list that the parameter `list` names. One member in both add and remove is 422. The members of a segment " +
		"are limited in number and size (409); they count in the bytes of the tenant's flags."
	change.Errors = []int{http.StatusConflict}
	change = rest.WithExamples(change, map[string]any{"list": "included", "add": []string{"user-42"}}, nil)
	change.RequestBody.Content["text/csv"] = &huma.MediaType{
		Schema: &huma.Schema{Type: huma.TypeString}, Example: "user-42\nuser-43\n",
	}
	need := changing
	need.FromCSV, need.MaxBody = membersFromCSV, maxMembersBody
	rest.Register(a.Core, need, change, func(ctx context.Context, in *struct {
		SegmentChange
		List string `query:"list" enum:"included,excluded" doc:"The list that a body of text/csv adds to"`
		Body segmentMembersBody
	}) (*membersOutput, error) {
		distinct := distinct(in.Body.Add) + distinct(in.Body.Remove)
		cmd := commands.ChangeMembers{
			SegmentRef: in.ref(ctx), List: events.MemberList(in.Body.List), Add: in.Body.Add, Remove: in.Body.Remove,
		}
		if err := a.hash(ctx, &cmd); err != nil {
			return nil, err
		}
		s, done, err := rest.Do(ctx, a.Writer, cmd)
		if err != nil {
			return nil, err
		}
		out := &membersOutput{Changed: rest.ChangeHeaders(done), ETag: rest.ETag(s.Version)}
		if done.Revision > 0 {
			out.Body.Added, out.Body.Removed = s.LastChange.Added, s.LastChange.Removed
		}
		out.Body.Unchanged = distinct - out.Body.Added - out.Body.Removed
		return out, nil
	})
}

// maxMembersBody limits the body of a change of members: the most members of a call, of the greatest length, fit.
const maxMembersBody = 4 << 20

func distinct(texts []string) int {
	seen := map[string]bool{}
	for _, text := range texts {
		seen[text] = true
	}
	return len(seen)
}

// byteOrderMark begins files of some programs.
var byteOrderMark = []byte("\xef\xbb\xbf")

// membersFromCSV turns a list of members as CSV into the body of a change. Its error names the line.
func membersFromCSV(query url.Values, text []byte) ([]byte, error) {
	if len(text) == 0 {
		return nil, errors.New(rest.MissingBody)
	}
	text = bytes.TrimPrefix(text, byteOrderMark)
	if !utf8.Valid(text) {
		return nil, errors.New("must be UTF-8")
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return nil, errors.New("must not contain the character NUL")
	}
	rows := csv.NewReader(bytes.NewReader(text))
	rows.FieldsPerRecord = 1
	body := segmentMembersBody{List: query.Get("list"), Add: []string{}}
	for {
		row, err := rows.Read()
		switch {
		case errors.Is(err, io.EOF):
			return rest.EncodeJSON(body), nil
		case errors.Is(err, csv.ErrFieldCount):
			line, _ := rows.FieldPos(0)
			return nil, fmt.Errorf("line %d: must have one column", line)
		case err != nil:
			return nil, fmt.Errorf("must be CSV: %w", err)
		}
		body.Add = append(body.Add, row[0])
	}
}
