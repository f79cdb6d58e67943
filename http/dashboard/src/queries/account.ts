import { api, body } from '../api/client';

// Changes of the person's account. The session signs in and out.

/** Changes the password, which ends all other sessions of the person. */
export function changePassword(currentPassword: string, newPassword: string) {
  return body(api.POST('/api/v1/auth/update-password', { body: { currentPassword, newPassword } }));
}

/** Mails a link to set a new password. */
export function forgotPassword(email: string) {
  return body(api.POST('/api/v1/auth/forgot-password', { body: { email } }));
}

/** The token comes from the mailed link, here and below. */
export function resetPassword(token: string, newPassword: string) {
  return body(api.POST('/api/v1/auth/reset-password', { body: { token, newPassword } }));
}

export function verifyEmail(token: string, password: string) {
  return body(api.POST('/api/v1/auth/verify-email', { body: { token, password } }));
}

/** Accepts the platform's invitation of the signed-in person. */
export function acceptInvitation() {
  return body(api.POST('/api/v1/admin/invitations/accept'));
}
