import { createMutation } from '@tanstack/svelte-query';
import { api, body } from '../api/client';
import { asFailure } from '../api/failure';
import { session } from '../session/session.svelte';

/** Mails the verification link again. Returns false if the address is verified already. */
export function useResendVerification() {
  return createMutation(() => ({
    mutationFn: async () => {
      await session.renew(); // the token may be older than the verification
      try {
        await body(api.POST('/api/v1/auth/resend-verification'));
        return true;
      } catch (error) {
        if (asFailure(error).status !== 409) throw error;
        return false;
      }
    },
  }));
}
