const hasFocus = (locator) => locator.evaluate((node) => node === document.activeElement);

/** How somebody uses a page by keyboard alone. The focus must never be lost: a reader at the keyboard would begin at the top again. */
export function byKeyboard(page) {
  const { keyboard } = page;
  let last = ''; // the last act on the open document
  page.on('domcontentloaded', () => (last = ''));

  // What leaves with the focus returns it a moment later.
  const keepsFocus = async () => {
    const lost = () => page.evaluate(() => document.activeElement === document.body);
    const end = Date.now() + 5_000;
    while (last && (await lost())) if (Date.now() > end) throw new Error(`the focus is lost after ${last}`);
  };

  const reach = async (wanted, what) => {
    await wanted.waitFor();
    await keepsFocus();
    last = `${what} ${wanted}`;
    for (let i = 0; i < 100; i++) {
      if (await hasFocus(wanted)) return;
      await keyboard.press('Tab');
    }
    throw new Error(`the keyboard does not reach ${wanted}`);
  };

  const openTab = async (tab) => {
    const tabs = page.getByRole('tablist').filter({ has: tab });
    await reach(tabs.getByRole('tab', { selected: true }), 'open');
    while (!(await hasFocus(tab))) await keyboard.press('ArrowRight');
  };

  const press = async (wanted, key = 'Enter') => {
    if ((await wanted.getAttribute('role')) === 'tab') return openTab(wanted);
    await reach(wanted, key);
    await keyboard.press(key);
  };

  const type = async (field, text) => {
    await reach(field, 'type');
    if ((await field.getAttribute('type')) === 'datetime-local') return typeTime(keyboard, text);
    await keyboard.press('Control+a');
    await keyboard.type(text);
  };

  /** Chooses an option by its value or text. */
  const choose = async (field, option) => {
    await reach(field, 'choose');
    const chosen = () =>
      field.evaluate(({ value, selectedOptions }) => [value, selectedOptions[0]?.label ?? ''], undefined);
    await keyboard.press('Home');
    for (let i = 0; !(await chosen()).includes(option); i++) {
      if (i === 100) throw new Error(`${field} has no ${option}`);
      await keyboard.press('ArrowDown');
    }
  };

  return { press, type, choose, keepsFocus };
}

/** Types a time such as 2026-01-31T15:04:05 part by part, as a browser in English asks for it. */
async function typeTime(keyboard, time) {
  const [, year, month, day, hour, minute, second] = /(\d+)-(\d+)-(\d+)T(\d+):(\d+):(\d+)/.exec(time);
  const twelve = String(hour % 12 || 12).padStart(2, '0');
  await keyboard.type(month + day + year);
  await keyboard.press('ArrowRight');
  await keyboard.type(twelve + minute + second + (hour < 12 ? 'A' : 'P'));
  await keyboard.press('Enter'); // a half-typed time does not count
}
