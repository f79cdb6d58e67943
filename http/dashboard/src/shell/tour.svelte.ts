/** The progress of the tour. Before its start it shows no step. */
class Tour {
  step = $state<number>();
}

export const tour = new Tour();
