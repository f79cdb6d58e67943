// Prints the programs that the dashboard shows, by language: node testdata/snippets.mjs <request as JSON>
import { readFileSync } from 'node:fs';
import ts from '../dashboard/node_modules/typescript/lib/typescript.js';

const source = readFileSync(new URL('../dashboard/src/snippets/snippets.ts', import.meta.url), 'utf8');
const { outputText } = ts.transpileModule(source, { compilerOptions: { module: 'ESNext', target: 'ES2022' } });
const { snippets } = await import(`data:text/javascript,${encodeURIComponent(outputText)}`);
const request = JSON.parse(process.argv[2]);
console.log(JSON.stringify(Object.fromEntries(Object.entries(snippets).map(([name, of]) => [name, of(request)]))));
