package mail

import (
	"fmt"
	"time"

	"flagledger/commands/notify"
	"flagledger/events/state"
)

const platformInvitation = `You have been invited to help run the feature flags at %[1]s, as %[2]s.

Sign in with this address, signing up first if you have no account, and accept the invitation:

    %[1]s/app/invitation

Programs accept it with POST %[1]s/api/v1/admin/invitations/accept.

It can be accepted until %[3]s.
`

const memberInvitation = `You have been invited to %q at %s, as %s.

Sign in there with this address, signing up first if you have no account: you
are a member from then on.
`

const tenantInvitation = `You have been invited to %q at %s, as %s.

Sign in there with this address, signing up first if you have no account, and
accept or decline.
`

const resetLink = `Somebody, most likely you, wants a new password for this address at
%[1]s. Choose it within the hour at

%[1]s/reset-password?token=%[2]s

If it was not you, there is nothing to do: the password stays as it is.
`

const verificationLink = `Somebody has signed up with this address at
%[1]s. If it was you, confirm within three days that the address is yours, with
the password that you chose, at

%[1]s/verify-email?token=%[2]s

If it was not you, leave it: nobody can use the address without your doing so.
`

const sandboxLink = `Somebody, most likely you, wants a sandbox for feature flags at
%[1]s with this address. Open it within three days at

%[1]s/sandbox?token=%[2]s

If it was not you, there is nothing to do: nothing has been made.
`

const sandboxEnding = `Your sandbox %q at %s
ends at %s. From then on its flags are still read and evaluated, but take no
more changes; 30 days later it is deleted. To keep it, choose a plan.
`

const sandboxDeletion = `Your sandbox %q at %s
ended at %s, and will soon be deleted with all that is in it. To keep it,
choose a plan.
`

// PlatformInvitation returns the mail of an invitation to a platform role at a URL.
func PlatformInvitation(to, url string, i state.Invitation) notify.Mail {
	until := i.ExpiresAt.UTC().Format("2 January 2006, 15:04 UTC")
	return notify.Mail{To: to, Subject: "An invitation", Text: fmt.Sprintf(platformInvitation, url, i.Role, until)}
}

// MemberInvitation returns the mail of an invitation to a tenant, whose name may be any text: see shown.
func MemberInvitation(to, url, tenant string, member state.Member) notify.Mail {
	text := memberInvitation
	if member.MustAccept {
		text = tenantInvitation
	}
	return notify.Mail{To: to, Subject: "An invitation", Text: fmt.Sprintf(text, shown(tenant), url, member.Role)}
}

// ResetLink returns a mail with a link, valid for an hour, that sets a new password.
func ResetLink(to, url, token string) notify.Mail {
	return notify.Mail{To: to, Subject: "A new password", Text: fmt.Sprintf(resetLink, url, token)}
}

// VerificationLink returns a mail with a link, valid for three days, that verifies the address.
func VerificationLink(to, url, token string) notify.Mail {
	return notify.Mail{To: to, Subject: "Confirm your e-mail address", Text: fmt.Sprintf(verificationLink, url, token)}
}

// SandboxLink returns a mail with a link, valid for three days, that creates an account and a sandbox.
func SandboxLink(to, url, token string) notify.Mail {
	return notify.Mail{To: to, Subject: "Your sandbox", Text: fmt.Sprintf(sandboxLink, url, token)}
}

// SandboxNotice returns a mail to an admin that a sandbox ends at a time, or will be deleted after it ended then.
func SandboxNotice(to, url, tenant string, notice notify.SandboxNotice, end time.Time) notify.Mail {
	subject, text := "Your sandbox ends soon", sandboxEnding
	if notice == notify.WarnOfDeletion {
		subject, text = "Your sandbox will be deleted", sandboxDeletion
	}
	return notify.Mail{
		To:      to,
		Subject: subject,
		Text:    fmt.Sprintf(text, shown(tenant), url, end.UTC().Format("2 January 2006, 15:04 UTC")),
	}
}
