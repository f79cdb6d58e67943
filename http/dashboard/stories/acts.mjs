import { byKeyboard } from './keyboard.mjs';

const byMouse = {
  press: (locator, key) => (key ? locator.press(key) : locator.click()),
  type: (locator, text) => locator.fill(text),
  choose: (locator, option) => locator.selectOption(option),
};

/** Counts a person's acts: a click, a key pressed on a control, a filled field and a choice are one each. */
export class Acts {
  made = [];
  #hands;

  /** With a page, all acts are made by keyboard. */
  constructor(page) {
    this.#hands = page ? byKeyboard(page) : byMouse;
  }

  #act = async (what, locator, make) => {
    this.made.push(`${what} ${locator}`);
    await make();
  };

  click = (locator) => this.#act('click', locator, () => this.#hands.press(locator));
  press = (locator, key) => this.#act(key, locator, () => this.#hands.press(locator, key));
  fill = (locator, text) => this.#act('fill', locator, () => this.#hands.type(locator, text));
  choose = (locator, option) => this.#act('choose', locator, () => this.#hands.choose(locator, option));

  /** Fails if there were more acts, or if the last one lost the focus. */
  async most(n) {
    await this.#hands.keepsFocus?.();
    if (this.made.length > n) throw new Error(`${this.made.length} acts, want at most ${n}:\n${this.made.join('\n')}`);
  }
}
