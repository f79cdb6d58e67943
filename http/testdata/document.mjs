// A document for the page's script under Node. It prints the first text that is shown, and ends.
globalThis.document = {
  visibilityState: 'visible',
  addEventListener() {},
  removeEventListener() {},
  body: {
    set textContent(text) {
      process.stdout.write(text, () => process.exit());
    },
  },
};
