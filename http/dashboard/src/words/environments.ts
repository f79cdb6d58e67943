/** The page of environments. */
export const environments = {
  title: 'Environments',
  text: 'Each flag is on or off, and has rules, in each environment by itself. All pages have this order.',
  column: 'Environment',
  actions: 'Actions',
  here: 'Current',
  color: (name: string) => `Colour of ${name}`,
  up: (name: string) => `Move ${name} up`,
  down: (name: string) => `Move ${name} down`,
  moved: (name: string, place: number, of: number) => `${name} is now number ${place} of ${of}.`,
  missing: {
    title: (name: string) => `There is no environment ${name}`,
    text: 'It was deleted, or never existed.',
    to: (name: string) => `Go to ${name}`,
  },
  add: {
    open: 'Add environment',
    title: 'Add an environment',
    text: 'All flags are off in it.',
    name: 'Name',
    nameHint: 'Lower-case letters, digits and hyphens, such as staging',
    wrongName: 'must be lower-case letters, digits and hyphens, and begin with a letter or digit',
    button: 'Add',
  },
  remove: {
    of: (name: string) => `Delete ${name}`,
    title: (name: string) => `Delete ${name}?`,
    text: 'The state and rules of flags in it are deleted. Evaluating flags in it will be an error.',
    confirm: (name: string) => `Type ${name} to confirm`,
    button: 'Delete',
    stays: 'It cannot be deleted: calls without an environment use it.',
  },
};
