// Serves the auth emulator of firebase-tools alone, without the hub, and so without Java and without downloads. It prints the port that it
// listens on, and ends with its standard input.
const { paths } = require("firebase-tools/lib/emulator/auth/apiSpec").default;
const { createApp } = require("firebase-tools/lib/emulator/auth/server");

// Of each path its schemas are compiled at the start, which takes nine seconds for all. Nothing here calls those of tenants and of the second version.
for (const path of Object.keys(paths)) {
  if (path.includes("/tenants") || path.startsWith("/v2/")) {
    delete paths[path];
  }
}

createApp(process.argv[2]).then((app) => {
  const server = app.listen(0, "127.0.0.1", () => console.log(`port ${server.address().port}`));
});
process.stdin.on("end", () => process.exit(0)).resume();
