const toasts = (v) => v.page.getByRole('region', { name: 'Recent actions' });
/** Waits until something is told, and looks at it: it stays then, however slow the machine. */
const told = (v, text) => toasts(v).getByText(text).hover();
const dialog = (v) => v.page.getByRole('dialog');
const focused = (v) => v.page.evaluate(() => document.activeElement?.getAttribute('aria-label'));

/** A flag in a list of several, and what is sent to switch it. */
async function begin(v, environment) {
  await v.signUp();
  for (const key of ['checkout', 'search']) await v.call('POST', '/api/v1/flags', { key, type: 'boolean' });
  const sent = [];
  await v.page.route('**/api/v1/flags/*/*able', (route) => {
    const request = route.request();
    const { 'x-environment': where, 'if-match': match, 'x-change-reason': reason } = request.headers();
    sent.push([request.url().split('/').at(-1), where, match, reason].join(' ').trim());
    return route.fallback();
  });
  await v.open(`/t/${v.place.tenant}/${environment}/flags`);
  await v.switch('checkout').waitFor();
  return sent;
}

async function stands(v, sent, ...wanted) {
  await v.until(`${wanted.at(-1)} is sent`, () => sent.length >= wanted.length);
  if (sent.join() !== wanted.join()) throw new Error(`sent: ${sent}`);
}

const isOn = async (v, environment) =>
  (await v.call('GET', '/api/v1/flags', undefined, undefined, environment)).find(({ key }) => key === 'checkout')
    .enabled;

export default {
  'a switch in production asks first, takes a reason, and is undone by keyboard': async (come) => {
    const v = await come();
    const sent = await begin(v, 'production');
    const { keyboard } = v.page;
    await v.switch('checkout').focus();
    await keyboard.press('Space');
    await v.heading('Switch checkout on in production?').waitFor();
    await v.inspect();
    await v.shot('switch-asks');
    await keyboard.press('Escape');
    await dialog(v).waitFor({ state: 'detached' });
    await v.until('the focus is back', async () => (await focused(v)) === 'Switch checkout on in production');
    await stands(v, sent);

    await keyboard.press('Space');
    await dialog(v).getByLabel('Reason').fill('Größer als zuvor');
    await keyboard.press('Enter');
    await told(v, 'checkout: enabled in production.');
    await dialog(v).waitFor({ state: 'detached' });
    await v.switch('checkout', { checked: true }).waitFor();
    await v.until('the focus stays', async () => (await focused(v)) === 'Switch checkout on in production');
    await v.inspect();
    await v.shot('switch-toast');
    await keyboard.press('Control+z');
    await told(v, 'checkout: disabled again in production.');
    await v.switch('checkout', { checked: false }).waitFor();
    const history = await v.call('GET', '/api/v1/flags/checkout/history');
    const reasons = history.map(({ action, version, reason }) => [action, version, reason].join(' '));
    if (reasons.join() !== 'disabled 3 undo,enabled 2 Größer als zuvor,created 1 ') throw new Error(`${reasons}`);
    if (sent[1] !== 'disable production "2" undo') throw new Error(`sent: ${sent}`);

    // It is switched off without a reason, and undone by the button, whose focus returns.
    await v.turn('checkout');
    await v.turn('checkout');
    await told(v, 'checkout: disabled in production.');
    await v.switch('search').focus();
    await v.button('Undo').focus();
    await keyboard.press('Enter');
    await told(v, 'checkout: enabled again in production.');
    await v.until('the focus goes back', async () => (await focused(v)) === 'Switch search on in production');
    await stands(v, sent.slice(2), 'enable production', 'disable production', 'enable production "5" undo');
    if (!(await isOn(v, 'production'))) throw new Error('it is off');
  },

  'elsewhere a switch goes at once, and what is told of it stays for ten seconds, and while it is used': async (
    come,
  ) => {
    const v = await come();
    await v.page.clock.install();
    const sent = await begin(v, 'development');
    const toast = toasts(v).getByText('checkout: enabled in development.');
    await v.page.clock.pauseAt(Date.now() + 60_000); // the clock stands still from here
    await v.switch('checkout').click();
    await toast.waitFor();
    await stands(v, sent, 'enable development');
    await v.page.clock.fastForward(9_999);
    await toast.waitFor();
    await v.button('Undo').focus();
    await v.page.clock.fastForward(60_000);
    await toast.waitFor();
    await v.switch('search').focus();
    await v.page.clock.fastForward(1);
    await toast.waitFor({ state: 'detached' });
    await v.page.clock.resume();

    // Two flags have one toast each; the shortcut undoes the newest.
    await v.switch('checkout').click();
    await told(v, 'checkout: disabled in development.');
    await v.switch('search').click();
    await told(v, 'search: enabled in development.');
    if ((await v.button('Undo').count()) !== 2) throw new Error('one of both is gone');
    await v.inspect();
    // In a text field the shortcut undoes the typing.
    await v.field('Search').press('Control+z');
    await v.switch('search').press('Control+z');
    await told(v, 'search: disabled again in development.');
    await stands(v, sent.slice(1), 'disable development', 'enable development', 'disable development "2" undo');
    await v.open(`/t/${v.place.tenant}/development/projects`);
    await toasts(v).getByText('checkout').waitFor({ state: 'detached' });
  },

  'who undoes what has changed meanwhile is told so, and nothing is lost': async (come) => {
    const v = await come({ refused: [412] });
    const sent = await begin(v, 'production');
    await v.turn('checkout', 'launch');
    await told(v, 'checkout: enabled in production.');
    await v.page.route('**/api/v1/flags/checkout/disable', (route) =>
      route.fulfill({ status: 503, contentType: 'application/problem+json', body: '{"status":503,"title":"away"}' }),
    );
    await v.button('Undo').click();
    await told(v, 'The service is temporarily unavailable.');
    await v.page.unroute('**/api/v1/flags/checkout/disable');
    await v.call('PATCH', '/api/v1/flags/checkout', { description: 'theirs' });
    await v.button('Undo').click();
    await told(v, 'checkout was not switched back in production: the flag has changed');
    await v.switch('checkout', { checked: true }).waitFor();
    await v.inspect();
    await v.shot('undo-conflict');
    if (sent.at(-1) !== 'disable production "2" undo') throw new Error(`sent: ${sent}`);
    const flag = await v.call('GET', '/api/v1/flags/checkout');
    if (!flag.enabled || flag.description !== 'theirs') throw new Error(JSON.stringify(flag));
    await v.link('See what has changed').click();
    await v.page.getByRole('tab', { name: 'History', selected: true }).waitFor();
    await v.page
      .getByText('“launch”')
      .or(v.page.getByText('launch', { exact: true }))
      .first()
      .waitFor();
    await toasts(v).getByRole('button', { name: 'Close' }).click();
    await toasts(v).getByText('checkout').waitFor({ state: 'detached' });
  },

  'the first flag asks and is undone as every other': async (come) => {
    const v = await come();
    const key = 'first-flag';
    await v.signUp();
    await v.button(`Create ${key}`).click();
    await v.switch(key).click();
    await v.heading(`Switch ${key} on in production?`).waitFor();
    await v.inspect();
    await v.button('Cancel').click();
    await dialog(v).waitFor({ state: 'detached' });
    await v.switch(key, { checked: false }).waitFor();
    await v.turn(key, 'launch');
    await told(v, `${key}: enabled in production.`);
    await v.page.getByText('It is on: everyone gets true.').waitFor();
    await v.inspect();
    await v.button('Undo').click();
    await told(v, `${key}: disabled again in production.`);
    await v.switch(key, { checked: false }).waitFor();
    const history = await v.call('GET', `/api/v1/flags/${key}/history`);
    const reasons = history.map(({ action, reason }) => `${action} ${reason}`);
    if (reasons.join() !== 'disabled undo,enabled launch,created ') throw new Error(`${reasons}`);
  },

  'the page of a flag asks in production too, and offers to undo': async (come) => {
    const v = await come({ refused: [404, 412], viewport: { width: 360, height: 740 } });
    // Changes by other people show only through the refusal.
    await v.page.route('**/api/v1/flags/stream', (route) => route.fulfill({ status: 404 }));
    const sent = await begin(v, 'development');
    await v.open(`/t/${v.place.tenant}/development/flags/checkout`);
    await v.switch('checkout', { environment: 'production' }).click();
    await v.heading('Switch checkout on in production?').waitFor();
    await v.inspect();
    await v.call('PATCH', '/api/v1/flags/checkout', { description: 'theirs' });
    await dialog(v).getByLabel('Reason').fill('launch');
    await dialog(v).getByRole('button', { name: 'Switch on' }).click();
    await v.heading('The flag has changed meanwhile').waitFor();
    await v.inspect();
    await v.shot('switch-asks-again');
    await dialog(v).getByRole('button', { name: 'Switch on' }).click();
    await told(v, 'checkout: enabled in production.');
    await dialog(v).waitFor({ state: 'detached' });
    await v.inspect();
    await v.shot('switch-toast-360');
    await v.button('Undo').click();
    await v.switch('checkout', { environment: 'production', checked: false }).waitFor();
    await told(v, 'checkout: disabled again in production.');

    await v.switch('checkout').click();
    await told(v, 'checkout: enabled in development.');
    await v.button('Undo').click();
    await told(v, 'checkout: disabled again in development.');
    await stands(
      v,
      sent,
      'enable production "1" launch',
      'enable production "2" launch',
      'disable production "3" undo',
      'enable development "4"',
      'disable development "5" undo',
    );
    if ((await isOn(v, 'production')) || (await isOn(v, 'development'))) throw new Error('it is on');
  },
};
