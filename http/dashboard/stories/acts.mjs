/** Counts a person's acts: a click, a key pressed on a control, a filled field and a choice are one each. */
export class Acts {
  made = [];

  #act = async (what, locator, make) => {
    this.made.push(`${what} ${locator}`);
    await make();
  };

  click = (locator) => this.#act('click', locator, () => locator.click());
  press = (locator, key) => this.#act(key, locator, () => locator.press(key));
  fill = (locator, text) => this.#act('fill', locator, () => locator.fill(text));
  choose = (locator, option) => this.#act('choose', locator, () => locator.selectOption(option));

  /** Fails if there were more acts. */
  most(n) {
    if (this.made.length > n) throw new Error(`${this.made.length} acts, want at most ${n}:\n${this.made.join('\n')}`);
  }
}
