// Runs the stories in a browser against the service at SERVICE_URL: node stories/run.mjs [name...]. A story is a file x.story.mjs; several run
// at a time, each in a browser context of its own. Each story's result is printed as a line of JSON.
import { readdirSync } from 'node:fs';
import { chromium } from 'playwright-core';
import { Visitor } from './visitor.mjs';

const folder = import.meta.dirname;
const asked = process.argv.slice(2);
const names = readdirSync(folder).filter(
  (name) => name.endsWith('.story.mjs') && (!asked.length || asked.some((a) => name.startsWith(a))),
);

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: ['--no-sandbox', '--host-resolver-rules=MAP plain.test 127.0.0.1'], // a name that browsers do not take for safe, as they do 127.0.0.1
});
let failed = 0;

async function play(name, title, story) {
  const visitors = [];
  const began = Date.now();
  try {
    await story(async (options) => {
      const visitor = await Visitor.come(browser, options);
      visitors.push(visitor);
      return visitor;
    });
    for (const visitor of visitors) visitor.check();
    console.log(JSON.stringify({ story: `${name}: ${title}`, ms: Date.now() - began }));
  } catch (error) {
    failed++;
    const failure = [error.stack, ...visitors.map((v) => v.page.url())].join('\n');
    console.log(JSON.stringify({ story: `${name}: ${title}`, failure }));
    if (process.env.SHOTS) for (const [i, v] of visitors.entries()) await v.shot(`failed-${name}-${i}`);
  } finally {
    for (const visitor of visitors) await visitor.leave();
  }
}

// Three stories run at a time.
const queue = [];
for (const name of names) {
  const { default: stories } = await import(`./${name}`);
  for (const [title, story] of Object.entries(stories))
    queue.push(() => play(name.replace('.story.mjs', ''), title, story));
}
await Promise.all(
  [1, 2, 3].map(async () => {
    while (queue.length) await queue.shift()();
  }),
);
await browser.close();
process.exitCode = failed || !names.length ? 1 : 0;
