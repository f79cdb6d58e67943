package accounts

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/commands"
	"flagledger/commands/keep/inbox"
	"flagledger/commands/notify"
	"flagledger/commands/people"
	"flagledger/events"
	"flagledger/http/quota"
	"flagledger/http/rest"
)

type notificationBody struct {
	ID          string            `json:"id" example:"0198c5a2-3e1b-7c40-8f5d-6a7b8c9d0e1f"`
	Type        string            `json:"type" doc:"The sender's type. The service itself sends tenant.member_added, tenant.role_changed, invitation.accepted, billing.payment_failed, sandbox.ending and sandbox.deletion" example:"release"`
	Title       string            `json:"title" example:"The new checkout is live"`
	Body        string            `json:"body" doc:"Empty if not sent, as are icon, actionType and referenceId" example:"It serves all users since this morning."`
	Icon        string            `json:"icon" example:"https://example.com/rocket.png"`
	ActionType  string            `json:"actionType" example:"open-flag"`
	ReferenceID string            `json:"referenceId" example:"new-checkout"`
	Data        map[string]string `json:"data" example:"{\"environment\":\"production\"}"`
	Read        bool              `json:"read" example:"false"`
	ReadAt      *rest.Timestamp   `json:"readAt" nullable:"true" doc:"null while it is unread"`
	CreatedAt   rest.Timestamp    `json:"createdAt"`
}

func showNotification(n notify.Notification) notificationBody {
	return notificationBody{
		ID:          n.ID,
		Type:        n.Type,
		Title:       n.Title,
		Body:        n.Body,
		Icon:        n.Icon,
		ActionType:  n.ActionType,
		ReferenceID: n.ReferenceID,
		Data:        n.Data,
		Read:        n.ReadAt != nil,
		ReadAt:      (*rest.Timestamp)(n.ReadAt),
		CreatedAt:   rest.Timestamp(n.CreatedAt),
	}
}

type notificationOutput struct{ Body notificationBody }

type inboxBody struct {
	Notifications []notificationBody `json:"notifications"`
	TotalCount    int                `json:"totalCount" doc:"In all pages" example:"1"`
	UnreadCount   int                `json:"unreadCount" example:"1"`
}

type inboxOutput struct {
	Link []string `header:"Link" doc:"The next page, if there is one: rel=\"next\", by a cursor"`
	Body inboxBody
}

// InboxInput is the page of a list of notifications.
type InboxInput struct {
	Limit      int    `query:"limit" minimum:"1" maximum:"100" default:"20" doc:"The maximum number of notifications"`
	Offset     int    `query:"offset" minimum:"0" default:"0" doc:"How many to skip; new notifications shift the pages"`
	UnreadOnly bool   `query:"unreadOnly" default:"false" doc:"Whether to list only unread notifications"`
	Cursor     string `query:"cursor" maxLength:"20" doc:"From Link rel=\"next\": its pages neither skip nor repeat notifications when new ones arrive"`
}

// formatCursor encodes a position in a person's inbox. Each notification has a unique time.
func formatCursor(n notify.Notification) string {
	return strconv.FormatInt(n.CreatedAt.UnixMicro(), 36)
}

func parseCursor(text string) (time.Time, bool) {
	at, err := strconv.ParseInt(text, 36, 64)
	return time.UnixMicro(at), err == nil && at > 0 && at < 1<<53 // the year 2255
}

type markedBody struct {
	Success     bool `json:"success" example:"true"`
	MarkedCount int  `json:"markedCount" doc:"The number that were unread" example:"3"`
}

type markedOutput struct{ Body markedBody }

type clearedBody struct {
	Success      bool `json:"success" example:"true"`
	ClearedCount int  `json:"clearedCount" example:"3"`
}

type clearedOutput struct{ Body clearedBody }

type sendBody struct {
	UserID      string `json:"userId" doc:"The recipient" example:"0198c5a0-d3c2-7e19-9a75-2b8f6c4d1e05"`
	TenantID    string `json:"tenantId,omitempty" doc:"A tenant with the caller as admin and the person as member; optional for platform admins" example:"0198c5a0-9b1e-7d44-b0c7-5e1f0a9d8c31"`
	Title       string `json:"title" minLength:"1" maxLength:"200" example:"The new checkout is live"`
	Body        string `json:"body,omitempty" maxLength:"2000" example:"It serves all users since this morning."`
	Type        string `json:"type" minLength:"1" maxLength:"200" doc:"A type of the caller's choice" example:"release"`
	Icon        string `json:"icon,omitempty" maxLength:"2000" example:"https://example.com/rocket.png"`
	ActionType  string `json:"actionType,omitempty" maxLength:"200" example:"open-flag"`
	ReferenceID string `json:"referenceId,omitempty" maxLength:"200" example:"new-checkout"`
	Data        texts  `json:"data,omitempty"`
}

// texts is an object of strings. Other members are decoded too, so that strings can report them with the other errors.
type texts map[string]any

// Schema implements huma.SchemaProvider.
func (texts) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type:                 huma.TypeObject,
		AdditionalProperties: &huma.Schema{Type: huma.TypeString},
		Examples:             []any{map[string]any{"environment": "production"}},
		Description: "Names and strings. FCM reserves the names from and message_type, and names that begin with " +
			"google or gcm",
	}
}

// strings returns the strings, and adds members of other types to wrong.
func (t texts) strings(wrong map[string]string) map[string]string {
	list := map[string]string{}
	for name, value := range t {
		text, ok := value.(string)
		if list[name] = text; !ok {
			wrong["data."+name] = "must be a string"
		}
	}
	return list
}

// NotificationPath names one of the caller's notifications.
type NotificationPath struct {
	ID string `path:"id" example:"0198c5a2-3e1b-7c40-8f5d-6a7b8c9d0e1f"`
}

func (a *API) addNotifications() {
	const tag, path = "Notifications", "/api/v1/notifications"
	rest.Register(
		a.Core,
		rest.Access{Who: rest.Person},
		rest.Operation("GET", path, "list-notifications", tag, "The caller's notifications, newest first"),
		a.listNotifications,
	)
	rest.Register(
		a.Core,
		rest.Access{Who: rest.Person},
		rest.Operation("GET", path+"/{id}", "get-notification", tag, "One of the caller's notifications"),
		func(ctx context.Context, in *NotificationPath) (*notificationOutput, error) {
			claims := rest.PrincipalOf(ctx).Claims
			n, err := a.Inbox.Get(ctx, claims.UserID, in.ID)
			if tenants := a.inboxTenants(claims); err == nil && tenants != nil && n.TenantID != "" &&
				!slices.Contains(tenants, n.TenantID) {
				return nil, rest.NewProblem(http.StatusNotFound, "there is no such notification")
			}
			return &notificationOutput{showNotification(n)}, err
		},
	)
	rest.Register(
		a.Core,
		rest.Access{Who: rest.Person},
		rest.Operation("PATCH", path+"/{id}/read", "read-notification", tag, "Mark a notification as read"),
		func(ctx context.Context, in *NotificationPath) (*notificationOutput, error) {
			n, err := a.Inbox.Read(ctx, rest.PrincipalOf(ctx).Claims.UserID, in.ID)
			return &notificationOutput{showNotification(n)}, err
		},
	)
	rest.Register(
		a.Core,
		rest.Access{Who: rest.Person},
		rest.Operation("PATCH", path+"/read-all", "read-all-notifications", tag,
			"Mark all notifications of the caller as read"),
		func(ctx context.Context, _ *struct{}) (*markedOutput, error) {
			n, err := a.Inbox.ReadAll(ctx, rest.PrincipalOf(ctx).Claims.UserID)
			return &markedOutput{markedBody{true, n}}, err
		},
	)
	rest.Register(
		a.Core,
		rest.Access{Who: rest.Person},
		rest.Operation("DELETE", path+"/clear", "clear-notifications", tag, "Remove all notifications of the caller"),
		func(ctx context.Context, _ *struct{}) (*clearedOutput, error) {
			n, err := a.Inbox.Clear(ctx, rest.PrincipalOf(ctx).Claims.UserID)
			return &clearedOutput{clearedBody{true, n}}, err
		},
	)
	send := rest.Operation("POST", path+"/send", "send-notification", tag, "Notify a person, and push it to their devices")
	send.Description = "Allowed for platform admins, and for a tenant's admins to its members. The size of an inbox is " +
		"limited, in total and per tenant: the oldest read notifications are removed first. A tenant's notifications and " +
		"pushes a day are also limited."
	send.DefaultStatus = http.StatusCreated
	send.Errors = []int{http.StatusNotFound}
	rest.Register(a.Core, rest.Access{Who: rest.Person}, send, a.sendNotification)
	a.addDevices(tag)
}

// inboxTenants returns the tenants whose notifications a person may read; nil means all.
func (a *API) inboxTenants(c people.Claims) []string {
	if a.IsVerifiedPerson(c) {
		return nil
	}
	return append([]string{}, a.TenantsOf(c)...)
}

func (a *API) listNotifications(ctx context.Context, in *InboxInput) (*inboxOutput, error) {
	claims := rest.PrincipalOf(ctx).Claims
	query := inbox.List{UnreadOnly: in.UnreadOnly, Tenants: a.inboxTenants(claims), Limit: in.Limit, Offset: in.Offset}
	if in.Cursor != "" {
		wrong := map[string]string{}
		before, ok := parseCursor(in.Cursor)
		if query.Before = before; !ok {
			wrong["cursor"] = "must be a cursor from Link rel=\"next\""
		}
		if in.Offset != 0 {
			wrong["offset"] = "is not allowed with a cursor"
		}
		if err := rest.WrongFields(wrong); err != nil {
			return nil, err
		}
	}
	page, err := a.Inbox.List(ctx, claims.UserID, query)
	if err != nil {
		return nil, err
	}
	out := &inboxOutput{
		Body: inboxBody{
			Notifications: make([]notificationBody, len(page.Notifications)),
			TotalCount:    page.Total,
			UnreadCount:   page.Unread,
		},
	}
	for i, n := range page.Notifications {
		out.Body.Notifications[i] = showNotification(n)
	}
	if page.More {
		values := rest.RequestOf(ctx).URL.Query()
		values.Del("offset")
		values.Set("cursor", formatCursor(page.Notifications[len(page.Notifications)-1]))
		out.Link = rest.NextLink(ctx, values)
	}
	return out, nil
}

type sentOutput struct {
	Location string `header:"Location"`
	Body     notificationBody
}

func (a *API) sendNotification(ctx context.Context, in *struct{ Body sendBody }) (*sentOutput, error) {
	p, b, wrong := rest.PrincipalOf(ctx), in.Body, map[string]string{}
	b.TenantID, b.UserID = events.CanonicalID(b.TenantID), a.PersonID(b.UserID)
	if !a.PlatformRole(p.Claims).Includes(events.PlatformAdmin) {
		if b.TenantID == "" {
			wrong["tenantId"] = "is required"
		} else if err := a.Authorize(p, rest.Access{Who: rest.Admin}, b.TenantID); err != nil {
			return nil, err
		}
	}
	n := notify.Notification{
		ID:          rest.NewID(ctx),
		UserID:      b.UserID,
		TenantID:    b.TenantID,
		Type:        b.Type,
		Title:       b.Title,
		Body:        b.Body,
		Icon:        b.Icon,
		ActionType:  b.ActionType,
		ReferenceID: b.ReferenceID,
		Data:        b.Data.strings(wrong),
	}
	if err := rest.AddBodyErrors(ctx, commands.MergeFieldErrors(wrong, notify.CheckNotification(n))); err != nil {
		return nil, err
	}
	release, err := a.limitNotifications(p, n)
	if err != nil {
		return nil, err
	}
	n, err = a.Notifications.Send(ctx, n)
	if rest.IsRefusal(err) {
		release()
	}
	if err != nil {
		return nil, err
	}
	return &sentOutput{rest.PublicPath(ctx, "/api/v1/notifications/"+url.PathEscape(n.ID)), showNotification(n)}, nil
}

// limitNotifications counts a notification against its sender's daily limit for the person, unless the person is not a
// member: then sending fails. release undoes the count if none is sent. Its error is a problem.
func (a *API) limitNotifications(p *rest.Principal, n notify.Notification) (release func(), err error) {
	sender := p.Claims.UserID
	if n.TenantID != "" {
		tenant, ok := a.Live.Tenant(n.TenantID)
		if !ok {
			return func() {}, nil
		}
		if _, member := tenant.Role(n.UserID); !member {
			return func() {}, nil
		}
		sender = a.TenantQuota(tenant)
	}
	left, release := a.Limiter.CountNotification(sender, n.UserID)
	if left.Exceeded {
		return nil, rest.TooManyRequests(left,
			fmt.Sprintf("the limit of %d notifications a day to the person is reached", quota.MaxNotifications))
	}
	return release, nil
}
