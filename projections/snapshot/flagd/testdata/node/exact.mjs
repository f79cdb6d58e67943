// Evaluates the flags of a document for each context with flagd's provider, in process. The argument names a file with
// the path of the document, the flags by key with their types, the contexts and the provider's package. Writes the
// results as JSON: {value} or {error}.
import { readFileSync, writeFileSync } from 'node:fs';

const task = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const { FlagdProvider } = await import(task.provider);
const silent = { error() {}, warn() {}, info() {}, debug() {} };
const provider = new FlagdProvider({ resolverType: 'in-process', offlineFlagSourcePath: task.document }, silent);
await provider.initialize();
const resolve = {
  boolean: (key, context) => provider.resolveBooleanEvaluation(key, false, context, silent),
  string: (key, context) => provider.resolveStringEvaluation(key, '', context, silent),
  number: (key, context) => provider.resolveNumberEvaluation(key, 0, context, silent),
  json: (key, context) => provider.resolveObjectEvaluation(key, {}, context, silent),
};
const results = [];
for (const context of task.contexts) {
  const row = {};
  for (const [key, type] of Object.entries(task.flags)) {
    try {
      const details = await resolve[type](key, context);
      row[key] = details.errorCode ? { error: details.errorCode } : { value: details.value };
    } catch (err) {
      row[key] = { error: err.code ?? String(err) };
    }
  }
  results.push(row);
}
writeFileSync(1, JSON.stringify(results));
process.exit(0);
