/** How far the tour is: no step of it is shown before it was begun. */
class Tour {
  step = $state<number>();
}

export const tour = new Tour();
