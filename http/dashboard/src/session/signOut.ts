import { router } from '../router/router.svelte';
import { session } from './session.svelte';

/** Ends the session and shows where one signs in, at once: the service is told meanwhile. */
export function signOut(): void {
  void session.signOut();
  router.go('/sign-in');
}
