import type { Language } from '../snippets/snippets';

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
  inProgram: 'The program contains the secret. Move it to the settings of the program before you commit the code.',
  docs: 'All calls of the API',
  exampleKey: 'my-flag',
  noId: 'YOUR_CLIENT_ID',
  noSecret: 'YOUR_CLIENT_SECRET',
  client: {
    text: 'The program needs a client, which has a secret. A new one may evaluate flags, and nothing else.',
    name: 'Name of the client',
    usual: 'Backend',
    create: 'Create a client',
    askAdmin: 'The program needs a client. Ask an admin of the tenant for its id and secret.',
  },
};
