import { router } from '../router/router.svelte';
import { session } from './session.svelte';

/** Ends the session and shows the sign-in page at once, while the service is told. */
export function signOut(): void {
  void session.signOut();
  router.go('/sign-in');
}
