import { useMarkTour } from '../queries/tour';
import { router } from '../router/router.svelte';
import { tour } from './tour.svelte';

/** Returns a function that restarts the tour, on a page that can show it: a tenant's. Call it when a component starts. */
export function useTourAgain(): () => void {
  const mark = useMarkTour();
  return () => {
    mark.mutate(false);
    tour.step = 0;
    if (!router.path.startsWith('/t/')) router.go('/');
    scrollTo(0, 0);
  };
}
