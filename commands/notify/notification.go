// Package notify fills people's inboxes, and has the ports for mails and pushes.
package notify

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"flagledger/commands"
	"flagledger/commands/people"
	"flagledger/commands/writer"
)

// Notification is a message in a person's inbox. Its text may be personal: it is erased with the person.
type Notification struct {
	ID          string
	UserID      string // the inbox's owner
	TenantID    string // the sending tenant; empty for the platform
	Type        string
	Title       string
	Body        string
	Icon        string
	ActionType  string
	ReferenceID string
	Data        map[string]string
	CreatedAt   time.Time
	ReadAt      *time.Time // nil if unread

	asks bool // whether it asks a new member to confirm
}

// Notifications adds notifications to inboxes and pushes them to people's devices.
type Notifications struct {
	Writer *writer.Writer
	Inbox  interface {
		// Add adds a notification and pushes it. If its id exists, it returns that notification and adds nothing. It
		// returns NotFound for an unknown person.
		Add(ctx context.Context, n Notification) (Notification, error)
		// ForgetTenant deletes all notifications of a tenant. It is idempotent.
		ForgetTenant(ctx context.Context, tenantID string) error
	}
	Visits people.TenantVisits
}

// Send adds a notification written by a caller; in a tenant only to its confirmed members. It returns Invalid with the
// wrong fields, Forbidden if the tenant accepts no changes, and the same NotFound for an unknown person and for a
// non-member.
func (s *Notifications) Send(ctx context.Context, n Notification) (Notification, error) {
	if err := CheckNotification(n); err != nil {
		return Notification{}, err
	}
	if err := s.Writer.MayChange(n.TenantID); err != nil {
		return Notification{}, err
	}
	return s.add(ctx, n)
}

// notices is the namespace of the ids of the service's own notifications.
var notices = uuid.MustParse("0d6f3a52-6c0f-5e63-9d2c-7a51f4e0b8c6")

// Notify sends a notification of the service to a person. n has no id: a second call with the same cause and person
// changes nothing.
//
// It does nothing for an unknown person or, if n.TenantID is set, for a non-member.
func (s *Notifications) Notify(ctx context.Context, cause string, n Notification) error {
	n.ID = uuid.NewSHA1(notices, []byte(cause+"\x00"+n.UserID)).String()
	if _, err := s.add(ctx, n); err != nil && commands.KindOf(err) != commands.NotFound {
		return err
	}
	return nil
}

// NotifyAdmins calls Notify for each admin of n.TenantID. If it fails, a retry notifies the remaining ones.
func (s *Notifications) NotifyAdmins(ctx context.Context, cause string, n Notification) error {
	tenant, err := writer.ReadTenant(ctx, s.Writer, n.TenantID)
	if err != nil {
		return err
	}
	for _, n.UserID = range commands.Admins(&tenant) {
		if err := s.Notify(ctx, cause, n); err != nil {
			return err
		}
	}
	return nil
}

// add adds a notification. A concurrently deleted tenant gets none: either its deletion finds this one, or the check
// after adding finds the deletion.
func (s *Notifications) add(ctx context.Context, n Notification) (Notification, error) {
	if n.TenantID == "" {
		return s.Inbox.Add(ctx, n)
	}
	if err := s.checkMember(ctx, n); err != nil {
		return Notification{}, err
	}
	added, err := s.Inbox.Add(ctx, n)
	if err != nil {
		return Notification{}, err
	}
	tenant, err := writer.ReadTenant(ctx, s.Writer, n.TenantID)
	if err == nil && !tenant.Exists {
		err = cmp.Or(s.Inbox.ForgetTenant(ctx, n.TenantID), noRecipient())
	}
	return added, err
}

// Reaches reports whether a person may still get a notification: not after leaving its tenant.
func (s *Notifications) Reaches(ctx context.Context, n Notification) (bool, error) {
	if n.TenantID == "" {
		return true, nil
	}
	n.asks = n.Type == MemberAddedNotice // Send refuses the other types
	err := s.checkMember(ctx, n)
	if commands.KindOf(err) == commands.NotFound {
		return false, nil
	}
	return err == nil, err
}

func (s *Notifications) checkMember(ctx context.Context, n Notification) error {
	tenant, err := writer.ReadTenant(ctx, s.Writer, n.TenantID)
	if err != nil {
		return err
	}
	if m, ok := tenant.Members[n.UserID]; !tenant.Exists || !ok || m.Pending {
		return noRecipient()
	}
	if n.asks {
		return nil
	}
	confirmed, err := people.HasConfirmed(ctx, s.Visits, tenant, n.UserID)
	if err == nil && !confirmed {
		err = noRecipient()
	}
	return err
}

func noRecipient() error { return commands.Refuse(commands.NotFound, "there is no such recipient") }

const (
	maxNotificationTitle = 200 // characters, as the next ones
	maxNotificationBody  = 2000
	maxNotificationWord  = 200
	maxNotificationIcon  = 2000
	maxNotificationData  = 4 << 10 // bytes of all names and values
)

// CheckNotification returns an error that names all wrong fields of a notification, or nil.
func CheckNotification(n Notification) error {
	wrong := commands.FieldErrors{}
	commands.CheckText(wrong, "userId", n.UserID, 1, maxNotificationWord)
	commands.CheckText(wrong, "title", n.Title, 1, maxNotificationTitle)
	commands.CheckText(wrong, "type", n.Type, 1, maxNotificationWord)
	wrong.Check(!slices.Contains(ownTypes, n.Type), "type", "is a type of the service's own notifications")
	commands.CheckText(wrong, "body", n.Body, 0, maxNotificationBody)
	commands.CheckText(wrong, "icon", n.Icon, 0, maxNotificationIcon)
	commands.CheckText(wrong, "actionType", n.ActionType, 0, maxNotificationWord)
	commands.CheckText(wrong, "referenceId", n.ReferenceID, 0, maxNotificationWord)
	commands.CheckText(wrong, "tenantId", n.TenantID, 0, maxNotificationWord)
	size := 0
	for name, value := range n.Data {
		size += len(name) + len(value)
		wrong.Check(!reservedForPushes(name), "data", "must not have the member %q: pushes reserve it", name)
		wrong.Check(!strings.ContainsRune(name+value, 0), "data", "must not contain the character NUL")
	}
	wrong.Check(size <= maxNotificationData, "data", "must have at most %d bytes of names and values", maxNotificationData)
	return wrong.Err()
}

// reservedForPushes reports whether FCM reserves a data name:
// https://firebase.google.com/docs/reference/fcm/rest/v1/projects.messages#Message.
func reservedForPushes(name string) bool {
	return name == "" || name == "from" || name == "message_type" || strings.HasPrefix(name, "google") ||
		strings.HasPrefix(name, "gcm")
}
