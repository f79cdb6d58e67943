import type { Language } from '../snippets/snippets';
import { isolated } from './common';

/** How programs evaluate a flag. */
export const code = {
  button: 'Use in code',
  title: (key: string) => `Use ${key} in code`,
  copyKey: (key: string) => `Copy the key ${key}`,
  language: 'Language',
  languages: {
    go: 'Go',
    javascript: 'JavaScript, server',
    web: 'JavaScript, web',
    python: 'Python',
    java: 'Java',
    dotnet: '.NET',
    curl: 'curl',
  } satisfies Record<Language, string>,
  program: (language: string) => `Program in ${language}`,
  inProgram: 'The program contains the key. Move it to the settings of the program before you commit the code.',
  docs: 'All calls of the API',
  exampleKey: 'my-flag',
  noKey: { browser: 'YOUR_BROWSER_KEY', server: 'YOUR_SERVER_KEY' },
  hidden: 'Browsers do not see this flag yet. Set “Seen by browsers” in its settings.',
  key: {
    text: {
      browser: (environment: string) =>
        `A web page needs a browser key, which is public. A new one is for ${isolated(environment)}, and all web pages may use it until you set its origins.`,
      server: (environment: string) =>
        `The program needs a server key, which is secret. A new one evaluates flags in ${isolated(environment)}, and nothing else.`,
    },
    name: 'Name of the key',
    usual: { browser: 'Web page', server: 'Backend' },
    create: 'Create a key',
    askAdmin: {
      browser: 'A web page needs a browser key. An admin of the tenant creates one, and everyone sees it under Keys.',
      server: 'The program needs a server key. Ask an admin of the tenant for one.',
    },
    all: 'All keys',
  },
};
