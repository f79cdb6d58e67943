// Serves the auth emulator of firebase-tools alone, without the hub, and so without Java and without downloads. It prints the port that it
// listens on, and ends with its standard input.
const { createApp } = require("firebase-tools/lib/emulator/auth/server");

createApp(process.argv[2]).then((app) => {
  const server = app.listen(0, "127.0.0.1", () => console.log(`port ${server.address().port}`));
});
process.stdin.on("end", () => process.exit(0)).resume();
