// A program for a web page ends after its first output under Node.
const { log } = console;
console.log = (...values) => {
  log(...values);
  process.exit();
};
