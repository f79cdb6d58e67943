import { useMarkTour } from '../queries/tour';
import { router } from '../router/router.svelte';
import { tour } from './tour.svelte';

/** Begins the tour anew, where it can be shown: at a tenant's pages. Call it at a component's start; what it returns begins the tour. */
export function useTourAgain(): () => void {
  const mark = useMarkTour();
  return () => {
    mark.mutate(false);
    tour.step = 0;
    if (!router.path.startsWith('/t/')) router.go('/');
    scrollTo(0, 0);
  };
}
