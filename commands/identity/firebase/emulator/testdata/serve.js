// Serves the auth emulator of firebase-tools alone, without the hub, and so without Java and without downloads. It prints the port that it
// listens on, and ends with its standard input.
const { paths } = require("firebase-tools/lib/emulator/auth/apiSpec").default;
const { createApp } = require("firebase-tools/lib/emulator/auth/server");
const { ProjectState } = require("firebase-tools/lib/emulator/auth/state");

// Of each path its schemas are compiled at the start, which takes nine seconds for all. Nothing here calls those of tenants and of the second version.
for (const path of Object.keys(paths)) {
  if (path.includes("/tenants") || path.startsWith("/v2/")) {
    delete paths[path];
  }
}

// A sign-up looks at the clock twice: for when the session began, and then for since when sessions are good. Where a second ended in between, the session had ended as it began.
const create = ProjectState.prototype.createUserWithLocalId;
ProjectState.prototype.createUserWithLocalId = function (localId, props) {
  if (props.validSince && props.lastLoginAt) {
    props.validSince = String(Math.floor(Number(props.lastLoginAt) / 1000));
  }
  return create.call(this, localId, props);
};

createApp(process.argv[2]).then((app) => {
  const server = app.listen(0, "127.0.0.1", () => console.log(`port ${server.address().port}`));
  server.keepAliveTimeout = 0; // else an unused connection is closed after five seconds, perhaps just as a call is sent on it
});
process.stdin.on("end", () => process.exit(0)).resume();
