import { api, body } from '../api/client';

// What people change of their accounts. Signing in and out is the session's.

/** It ends all other sessions of the person. */
export function changePassword(currentPassword: string, newPassword: string) {
  return body(api.POST('/api/v1/auth/update-password', { body: { currentPassword, newPassword } }));
}

/** Mails a link that leads to a new password. */
export function forgotPassword(email: string) {
  return body(api.POST('/api/v1/auth/forgot-password', { body: { email } }));
}

/** token is out of the mailed link, here and below. */
export function resetPassword(token: string, newPassword: string) {
  return body(api.POST('/api/v1/auth/reset-password', { body: { token, newPassword } }));
}

export function verifyEmail(token: string, password: string) {
  return body(api.POST('/api/v1/auth/verify-email', { body: { token, password } }));
}

/** Accepts the platform's invitation of the person who is signed in. */
export function acceptInvitation() {
  return body(api.POST('/api/v1/admin/invitations/accept'));
}
