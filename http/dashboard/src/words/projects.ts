import { isolated } from './common';

/** Projects, which group flags. */
export const projects = {
  title: 'Projects',
  text: 'Flags that belong together.',
  columns: { project: 'Project', flags: 'Flags', updated: 'Changed', actions: 'Actions' },
  none: 'No project yet',
  noneText: 'A project holds the flags of one product or one team.',
  new: 'New project',
  change: 'Change the project',
  edit: (name: string) => `Edit ${isolated(name)}`,
  name: 'Name',
  description: 'Description',
  color: 'Color',
  firstColor: '#6b7280',
  remove: {
    of: (name: string) => `Delete ${isolated(name)}`,
    title: (name: string) => `Delete ${isolated(name)}?`,
    text: 'The project has no flags. Its past stays in the audit trail.',
    hasFlags: 'Delete its flags first',
    button: 'Delete',
  },
};
