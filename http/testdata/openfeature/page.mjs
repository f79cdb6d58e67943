// What a web page has beside Node: a server of its own, which answers /flag-token, and an end, here after its first output.
const { fetch, console } = globalThis;
globalThis.fetch = (what, init) =>
  what === '/flag-token' ? Promise.resolve(new Response(process.env.SERVICE_TOKEN)) : fetch(what, init);
const { log } = console;
console.log = (...values) => {
  log(...values);
  process.exit();
};
