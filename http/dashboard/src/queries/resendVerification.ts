import { createMutation } from '@tanstack/svelte-query';
import { api, body } from '../api/client';
import { asFailure } from '../api/failure';
import { session } from '../session/session.svelte';

/** Has the link mailed again that verifies the person's address. It is false where the address is verified by now. */
export function useResendVerification() {
  return createMutation(() => ({
    mutationFn: async () => {
      await session.renew(); // the token may be from before the address was verified
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
