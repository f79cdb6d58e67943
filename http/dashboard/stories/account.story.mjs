import { password } from './visitor.mjs';

export default {
  'no script of the page makes markup of a text': async (come) => {
    const v = await come({ refused: ['TrustedHTML'] });
    await v.open('/sign-in');
    await v.heading('Sign in').waitFor();
    const thrown = await v.page.evaluate(() => {
      try {
        document.body.innerHTML = '<b>';
      } catch (error) {
        return error.name;
      }
    });
    if (thrown !== 'TypeError') throw new Error(`the browser makes markup of a text: ${thrown}`);
    await v.heading('Sign in').waitFor();
  },

  'a newcomer gets from nothing to an evaluated flag': async (come) => {
    const v = await come();
    await v.open();
    await v.link('Sign up').click();
    await v.inspect();
    await v.signUp();
    await v.inspect();
    await v.button('Create first-flag').click();
    await v.turn('first-flag');
    const tried = v.page.waitForRequest('**/evaluate*');
    await v.button('Try it here').click();
    await v.page.getByText('true · FALLTHROUGH').waitFor();
    if (!(await tried).url().endsWith('?preview=true')) throw new Error('what is tried counts as an evaluation');
    await v.inspect();
    await v.shot('first-flag');
    await v.button('Go to your flags').click();
    await v.switch('first-flag', { checked: true }).waitFor();

    await v.button('Take the tour').press('Enter');
    await v.heading('Where you are 1 of 5').waitFor();
    await v.inspect();
    await v.shot('tour');
    const marked = () =>
      v.page
        .locator('[data-tour]')
        .filter({ visible: true })
        .evaluateAll((all) =>
          all
            .filter((it) => getComputedStyle(it).outlineStyle === 'solid' && it.getBoundingClientRect().bottom > 0)
            .map((it) => it.dataset.tour)
            .join(),
        );
    const marks = async (...steps) => {
      for (const step of steps) {
        if ((await marked()) !== step) throw new Error(`the step of ${step} marks ${await marked()}`);
        await v.inspect();
        if (step !== steps.at(-1)) await v.button('Next').press('Enter');
      }
    };
    await marks('place', 'flags', 'search', 'audit', 'account');
    // On narrow screens the pages are behind the menu.
    await v.page.setViewportSize({ width: 360, height: 740 });
    for (let i = 0; i < 4; i++) await v.button('Back').press('Enter');
    await marks('place', 'menu', 'search', 'menu', 'account');
    await v.button('Back').press('Enter');
    await v.page.getByText('You find it in the menu.').waitFor();
    await v.shot('tour-360');
    await v.button('Menu').click();
    await v.page.getByRole('dialog', { name: 'Menu' }).waitFor();
    if (!(await marked()).split(',').includes('audit')) throw new Error(`the menu marks ${await marked()}`);
    await v.shot('tour-menu-360');
    await v.page.keyboard.press('Escape');
    await v.page.getByRole('dialog').waitFor({ state: 'detached' });
    await v.button('Next').press('Enter');
    await v.button('Done').press('Enter');
    await v.button('Done').waitFor({ state: 'detached' });
    const { id } = await v.page.evaluate(() => JSON.parse(sessionStorage.getItem('session')).user);
    const tour = () => v.call('GET', `/api/v1/users/${id}/product-tours/dashboard@1`);
    await v.until('the tour is over', async () => (await tour()).completed);
    await v.page.reload();
    await v.switch('first-flag').waitFor();
    if (await v.button('Take the tour').count()) throw new Error('the tour is offered again');
    await v.button('Account').click();
    await v.page.getByRole('menuitem', { name: 'Take the tour' }).click();
    await v.button('Next').press('Escape');
    await v.button('Next').waitFor({ state: 'detached' });
  },

  'what is typed where one signs in stays, while the service is told of the sign-out before': async (come) => {
    const v = await come();
    await v.signUp();
    let goOn;
    const held = new Promise((resolve) => (goOn = resolve));
    await v.page.route('**/api/v1/auth/logout', async (route) => {
      await held;
      await route.continue();
    });
    await v.button('Account').click();
    await v.page.getByRole('menuitem', { name: 'Sign out' }).click();
    await v.field('Email').fill('typed@example.com');
    const told = v.page.waitForResponse('**/api/v1/auth/logout');
    goOn();
    await told;
    await v.page.waitForURL('**/sign-in');
    await v.page.evaluate(() => new Promise(requestAnimationFrame));
    if ((await v.field('Email').inputValue()) !== 'typed@example.com') throw new Error('what was typed is lost');
  },

  'a session is taken to a reloaded page and a new tab, and ended in all of them': async (come) => {
    const v = await come();
    await v.signUp();
    if (v.page.url().includes('token')) throw new Error(`a token is in ${v.page.url()}`);
    await v.page.reload();
    await v.heading('Flags').waitFor();
    const tab = await v.context.newPage();
    await v.until('the new tab has the session', async () => {
      await tab.goto(v.page.url()); // on a busy machine the other tab's message may arrive too late
      const flags = tab.getByRole('heading', { name: 'Flags', exact: true });
      return flags.waitFor({ timeout: 5000 }).then(
        () => true,
        () => false,
      );
    });
    await v.button('Appearance').click();
    await v.page.getByRole('menuitemradio', { name: 'Dark', checked: false }).waitFor();
    await v.page.keyboard.press('Escape'); // the page is usable again
    await v.button('Account').click();
    await v.page.getByRole('menuitem', { name: 'Sign out' }).click();
    await v.heading('Sign in').waitFor();
    await tab.getByRole('heading', { name: 'Sign in', exact: true }).waitFor();
    if (await tab.evaluate(() => sessionStorage.getItem('session'))) throw new Error('the tokens are still there');
  },

  'a renewal that is under way undoes no sign-out': async (come) => {
    const v = await come({ refused: [401] });
    await v.signUp();
    await v.page.evaluate(() => {
      const session = JSON.parse(sessionStorage.getItem('session'));
      sessionStorage.setItem('session', JSON.stringify({ ...session, endsAt: 0 }));
    });
    let traded;
    let goOn;
    const held = new Promise((resolve) => (goOn = resolve));
    await v.page.route('**/api/v1/auth/refresh', async (route) => {
      const response = await route.fetch();
      traded = await response.json();
      await held;
      await route.fulfill({ response });
    });
    await v.page.reload();
    await v.until('the token is traded', () => traded);
    await v.button('Account').click();
    await v.page.getByRole('menuitem', { name: 'Sign out' }).click();
    await v.heading('Sign in').waitFor();
    const told = v.page.waitForResponse('**/api/v1/auth/logout');
    goOn();
    if (!(await told).ok()) throw new Error('the service ends no session');
    await v.page.reload();
    await v.heading('Sign in').waitFor();
    if (await v.page.evaluate(() => sessionStorage.getItem('session'))) throw new Error('a token is kept');
    const { status } = await fetch(`${v.url}/api/v1/tenants`, { headers: { Authorization: `Bearer ${traded.token}` } });
    if (status !== 401) throw new Error(`the token that was traded answers ${status}`);
  },

  'who signs out with a token that no longer holds ends the session at the service too': async (come) => {
    const v = await come();
    await v.signUp();
    const { refreshToken } = await v.page.evaluate(() => JSON.parse(sessionStorage.getItem('session')));
    await v.page.clock.install();
    await v.page.clock.setSystemTime(Date.now() + 2 * 3600_000);
    await v.button('Account').click();
    const told = v.page.waitForResponse('**/api/v1/auth/logout');
    await v.page.getByRole('menuitem', { name: 'Sign out' }).click();
    await v.heading('Sign in').waitFor();
    if (!(await told).ok()) throw new Error('the service ends no session');
    const traded = await fetch(`${v.url}/api/v1/auth/refresh`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ refreshToken }),
    });
    if (traded.status !== 401) throw new Error(`the refresh token answers ${traded.status}`);
  },

  'two tabs whose token ends at once trade it once, and both go on': async (come) => {
    const v = await come();
    await v.signUp();
    // A tab's message may arrive after its lock is released.
    await v.context.addInitScript(() => {
      const { set } = Object.getOwnPropertyDescriptor(BroadcastChannel.prototype, 'onmessage');
      Object.defineProperty(BroadcastChannel.prototype, 'onmessage', {
        set(hear) {
          set.call(this, (message) => setTimeout(() => hear(message), 20));
        },
      });
    });
    const tab = await v.context.newPage();
    const pages = [v.page, tab];
    await tab.addInitScript(
      (session) => sessionStorage.getItem('session') ?? sessionStorage.setItem('session', session),
      await v.page.evaluate(() => sessionStorage.getItem('session')),
    );
    await tab.goto(v.page.url());
    await tab.getByRole('heading', { name: 'Flags', exact: true }).waitFor();
    for (const page of pages)
      await page.evaluate(() => {
        const session = JSON.parse(sessionStorage.getItem('session'));
        sessionStorage.setItem('session', JSON.stringify({ ...session, endsAt: 0 }));
      });
    let trades = 0;
    await v.context.route('**/api/v1/auth/refresh', async (route) => {
      trades++;
      await v.until('both tabs wait for a token', () =>
        v.page.evaluate(async () => {
          const { held, pending } = await navigator.locks.query();
          return [...held, ...pending].filter(({ name }) => name === 'renew').length > 1;
        }),
      );
      await route.continue();
    });
    await Promise.all(pages.map((page) => page.reload()));
    for (const page of pages) await page.getByRole('heading', { name: 'Flags', exact: true }).waitFor();
    await v.until('both have the session that one has traded for', async () => {
      const [one, other] = await Promise.all(
        pages.map((page) => page.evaluate(() => JSON.parse(sessionStorage.getItem('session')))),
      );
      return one.endsAt && one.token === other.token;
    });
    if (trades !== 1) throw new Error(`the token was traded ${trades} times`);
  },

  'a tab that was closed and is opened again takes over what the others have made of its session': async (come) => {
    const v = await come();
    await v.signUp();
    const kept = await v.page.evaluate(() => {
      const session = sessionStorage.getItem('session');
      sessionStorage.setItem('session', JSON.stringify({ ...JSON.parse(session), endsAt: 0 }));
      return session;
    });
    await v.page.reload(); // it renews the token
    await v.heading('Flags').waitFor();
    await v.until(
      'it is traded',
      async () => (await v.page.evaluate(() => sessionStorage.getItem('session'))) !== kept,
    );
    await v.page.waitForFunction(() => JSON.parse(sessionStorage.getItem('session')).endsAt > 0);
    const tab = await v.context.newPage();
    // The browser reopens a closed tab with what it had stored.
    await tab.addInitScript(
      (session) => {
        if (sessionStorage.getItem('reopened')) return;
        sessionStorage.setItem('reopened', 'yes');
        sessionStorage.setItem('session', session);
      },
      JSON.stringify({ ...JSON.parse(kept), endsAt: 1 }),
    );
    let trades = 0;
    await v.context.route('**/api/v1/auth/refresh', (route) => {
      trades++;
      return route.continue();
    });
    await tab.goto(v.page.url());
    await tab
      .getByRole('heading', { name: 'Flags', exact: true })
      .or(tab.getByText('Your session has ended.'))
      .first()
      .waitFor();
    const [here, there] = await Promise.all(
      [v.page, tab].map((page) => page.evaluate(() => sessionStorage.getItem('session'))),
    );
    if (trades) throw new Error(`a token that was used is traded ${trades} times`);
    if (!there || here !== there) throw new Error('the tabs have a session each');
    await v.call('GET', '/api/v1/flags');
  },

  'what is typed into a flag when the session ends elsewhere is there for the same person alone': async (come) => {
    const v = await come({ refused: [401, 403, 412] });
    await v.signUp();
    const w = await come();
    const other = `${crypto.randomUUID()}@example.com`;
    await v.call('POST', `/api/v1/tenants/${v.place.tenant}/users`, { email: other, role: 'developer' });
    await w.signUp(other);
    await v.call('POST', '/api/v1/flags', { key: 'typed', type: 'boolean' });
    await v.open(`/t/${v.place.tenant}/production/flags/typed?tab=overview`);
    await v.field('Name').fill('Mine');
    await v.page.getByRole('tab', { name: 'Rules' }).click();
    const type = async (name) => {
      await v.button('Add rule').click();
      await v.field('Name').fill(name);
      await v.button('Delete condition').click();
    };
    const endElsewhere = async () => {
      const post = async (path, body, token) => {
        const response = await fetch(v.url + path, {
          method: 'POST',
          headers: { 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }) },
          body: JSON.stringify(body),
        });
        if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
        return response.json();
      };
      const { token } = await post('/auth/signin', { email: v.email, password });
      await post('/api/v1/auth/update-password', { currentPassword: password, newPassword: password }, token);
      // The page's own reads may find out first: then there is nothing left to save.
      await v.until('the page has found out', async () => {
        if (await v.heading('Sign in').count()) return true;
        await v
          .button('Save')
          .click({ timeout: 1000 })
          .catch(() => {});
        return false;
      });
    };
    await type('Staff');
    await endElsewhere();
    await v.shot('ended');
    await v.fillSignIn();
    await v.heading('Staff').waitFor();
    await v.inspect();
    await v.shot('typed-again');
    await v.button('Save').click();
    await v.button('Save').waitFor({ state: 'detached' });
    await v.page.getByRole('tab', { name: 'Overview' }).click();
    if ((await v.field('Name').inputValue()) !== 'Mine') throw new Error('the name is lost');
    await v.button('Save').click();
    await v.button('Save').waitFor({ state: 'detached' });
    const made = [await v.call('GET', '/api/v1/flags/typed'), await v.call('GET', '/api/v1/flags/typed/rules')];
    if (made[0].name !== 'Mine' || made[1].rules[0].name !== 'Staff') throw new Error(JSON.stringify(made));

    // Another person sees nothing of it, nor does the person who left it.
    await v.page.getByRole('tab', { name: 'Rules' }).click();
    await type('Secret');
    await endElsewhere();
    await v.fillSignIn(other);
    await v.heading('Staff').waitFor();
    if ((await v.heading('Secret').count()) || (await v.button('Save').count())) throw new Error('it is shown');
    await type('Theirs');
    await v.button('Account').click();
    await v.page.getByRole('menuitem', { name: 'Sign out' }).click();
    await v.button('Leave the page').click();
    await v.fillSignIn(other);
    await v.link('typed').click();
    await v.page.getByRole('tab', { name: 'Rules' }).click();
    await v.heading('Staff').waitFor();
    if (await v.button('Save').count()) throw new Error('what was left is there again');
  },

  'a password is changed, and is the one to sign in with': async (come) => {
    const v = await come({ refused: [401, 403, 422] });
    const email = `${crypto.randomUUID()}@example.com`;
    await v.signUp(email);
    await v.open(`/t/${v.place.tenant}/production/profile`);
    const change = async (current, to) => {
      await v.field('Current password').fill(current);
      await v.field('New password').fill(to);
      await v.button('Change the password').click();
    };
    await change(password, 'short');
    await v.page.getByText('New password must be at least 8 characters').waitFor();
    await change('wrong horse', 'another horse');
    await v.page.getByText('Current password is wrong').waitFor();
    await v.inspect();
    await change(password, 'another horse');
    await v.page.getByText('The password is changed').waitFor();
    await v.inspect();
    const other = await come({ refused: [401] });
    await other.open('/sign-in');
    await other.fillSignIn(email);
    await other.page.getByText('The e-mail address or the password is wrong.').waitFor();
    await other.field('Password').fill('another horse');
    await other.button('Sign in').click();
    await other.heading('Flags').waitFor();
  },

  'wrong entries are told beside their fields': async (come) => {
    const v = await come({ refused: [401, 422] });
    await v.open('/sign-up');
    await v.field('Email').fill('nonsense');
    await v.field('Password').fill('short');
    await v.button('Sign up').click();
    await v.page.getByText('Password must be at least 8 characters.').waitFor();
    await v.inspect();
    await v.open('/sign-in');
    await v.field('Email').fill('nobody@example.com');
    await v.field('Password').fill(password);
    await v.button('Sign in').click();
    await v.page.getByText('The e-mail address or the password is wrong.').waitFor();
  },

  'a token that the service has forgotten is renewed without a word': async (come) => {
    const v = await come({ refused: [401] });
    await v.signUp();
    await v.page.evaluate(() => {
      const session = JSON.parse(sessionStorage.getItem('session'));
      sessionStorage.setItem('session', JSON.stringify({ ...session, token: 'x' }));
    });
    await v.page.reload();
    await v.heading('Create your first flag').waitFor();
    const token = await v.page.evaluate(() => JSON.parse(sessionStorage.getItem('session')).token);
    if (token === 'x') throw new Error('the token is the old one');
  },

  'whom one person asks flags for is not shown to the next who signs in': async (come) => {
    const v = await come();
    const ask = async (email) => {
      await v.signUp(email);
      await v.open(`/t/${v.place.tenant}/production/playground`);
      await v.field('Targeting key').waitFor();
    };
    await ask();
    await v.field('Targeting key').fill('somebody');
    await v.page.reload();
    await v.field('Targeting key').waitFor();
    if ((await v.field('Targeting key').inputValue()) !== 'somebody') throw new Error('it is not kept');
    await v.button('Account').click();
    await v.page.getByRole('menuitem', { name: 'Sign out' }).click();
    await v.heading('Sign in').waitFor();
    await ask();
    const shown = await v.field('Targeting key').inputValue();
    if (shown !== 'user-42') throw new Error(`the next asks for ${shown}`);
  },

  'who sets a new password while they are signed in reads that it is set': async (come) => {
    const v = await come();
    await v.signUp();
    await v.page.route('**/api/v1/auth/reset-password', (route) => route.fulfill({ json: { success: true } }));
    await v.open('/reset-password#token=good');
    await v.field('New password').fill('another horse');
    const told = v.page.waitForResponse('**/api/v1/auth/logout');
    await v.button('Set the password').click();
    await told;
    await v.page.getByText('The password is set').waitFor();
    await v.until('they are signed out', () => v.page.evaluate(() => !sessionStorage.getItem('session')));
    await v.page.reload();
    await v.page.getByText('The password is set').waitFor();
    await v.inspect();
    await v.link('Sign in').click();
    await v.heading('Sign in').waitFor();
  },

  'a mailed link leads to its form, and its token leaves the address': async (come) => {
    const v = await come({ refused: [422] });
    await v.page.goto(`${v.url}/reset-password?token=used`);
    await v.field('New password').fill(password);
    if (v.page.url() !== `${v.url}/app/reset-password`) throw new Error(`the address is ${v.page.url()}`);
    await v.button('Set the password').click();
    await v.page.getByText('The link has been used or has expired.').waitFor();
    await v.inspect();
    await v.page.goto(`${v.url}/verify-email?token=used`);
    await v.heading('Confirm your address').waitFor();
  },

  'whoever signs up or in from a page that needs a session comes back to it, and to no other site': async (come) => {
    const v = await come();
    await v.open('/invitation');
    await v.link('Sign up').click();
    await v.link('Sign in').click();
    await v.link('Sign up').click();
    await v.page.reload();
    const email = await v.fillSignUp();
    await v.heading('An invitation').waitFor();
    if (v.page.url() !== `${v.url}/app/invitation`) throw new Error(`the address is ${v.page.url()}`);

    await v.open();
    await v.heading('Flags').waitFor();
    const deep = v.page.url().replace('/flags', '/audit?q=flag');
    const other = await come();
    await other.page.goto(deep);
    await other.link('Forgot your password?').click();
    await other.link('Back to sign in').click();
    await other.fillSignIn(email);
    await other.heading('Audit').waitFor();
    if (other.page.url() !== deep) throw new Error(`the address is ${other.page.url()}`);

    for (const next of [
      'https://example.com/',
      '//example.com',
      '/\\example.com',
      '/../api/v1/tenants',
      '.example.com',
    ]) {
      await v.open(`/sign-in?next=${encodeURIComponent(next)}`);
      await v.fillSignIn(email);
      await v.heading('Sign in').waitFor({ state: 'detached' });
      if (!v.page.url().startsWith(`${v.url}/app/`)) throw new Error(`${next} leads to ${v.page.url()}`);
    }
  },

  'who is signed out by the service reads so, and goes on where they were': async (come) => {
    const v = await come({ refused: [401] });
    await v.signUp();
    await v.open(new URL(v.page.url()).pathname.replace('/app', '').replace('/flags', '/audit?q=flag'));
    await v.heading('Audit').waitFor();
    const before = v.page.url();
    await v.page.evaluate(() => {
      const session = JSON.parse(sessionStorage.getItem('session'));
      sessionStorage.setItem('session', JSON.stringify({ ...session, token: 'x', refreshToken: 'x' }));
    });
    await v.page.reload();
    await v.page.getByText('Your session has ended.').waitFor();
    await v.inspect();
    await v.fillSignIn();
    await v.heading('Audit').waitFor();
    if (v.page.url() !== before) throw new Error(`the address is ${v.page.url()}`);
    await v.button('Account').click();
    await v.page.getByRole('menuitem', { name: 'Sign out' }).click();
    await v.heading('Sign in').waitFor();
    if (await v.page.getByText('Your session has ended.').count()) throw new Error('it is told of who signed out');
  },

  'who may not go on before their address is verified reads so, and has the link mailed again': async (come) => {
    const v = await come({ refused: [403, 409, 422, 429] });
    await v.signUp();
    const problem = (status, detail) => ({ status, contentType: 'application/problem+json', json: { status, detail } });
    // This is how a service in production responds: TestWhatAnUnverifiedAccountMayDo checks that.
    await v.page.route('**/api/v1/flags', (route) =>
      route.request().method() === 'POST'
        ? route.fulfill(problem(403, 'the e-mail address is not verified: POST /api/v1/auth/resend-verification'))
        : route.continue(),
    );
    const answers = [
      problem(429, 'too many'),
      { status: 200, json: { success: true } },
      problem(409, 'it is verified'),
    ];
    await v.page.route('**/auth/resend-verification', (route) => route.fulfill(answers.shift()));
    await v.button('Create first-flag').click();
    await v.page.getByText('Your e-mail address is not verified yet.').waitFor();
    if (await v.page.getByText('/api/v1/auth').count()) throw new Error('a person is told to call the API');
    await v.inspect();
    await v.button('Mail the link again').click();
    await v.page.getByText('There were too many requests.').waitFor();
    await v.button('Mail the link again').click();
    await v.page.getByText(`The link is on its way to ${v.email}.`).waitFor();
    await v.inspect();

    await v.open('/verify-email#token=used');
    await v.field('Password').fill(password);
    await v.button('Confirm').click();
    await v.page.getByText('The link has been used or has expired.').waitFor();
    await v.inspect();
    await v.button('Mail the link again').click();
    await v.page.getByText('Your e-mail address is now verified.').waitFor();

    const other = await come({ refused: [422] });
    await other.open('/verify-email');
    await other.link('Sign in').click();
    await other.fillSignIn(v.email);
    await other.button('Mail the link again').waitFor();
  },

  'over plain HTTP, where browsers keep much back, sessions are renewed, rules added and texts copied by hand': async (
    come,
  ) => {
    const v = await come({ refused: [401], url: process.env.SERVICE_URL.replace('127.0.0.1', 'plain.test') });
    await v.signUp();
    if (await v.page.evaluate(() => isSecureContext)) throw new Error('the browser takes it for safe');
    await v.button('Create first-flag').click();
    await v.button('Copy').first().click();
    await v.button('Selected: copy it yourself').waitFor();
    const selected = await v.page.evaluate(() => String(getSelection()));
    if (!selected.startsWith('curl')) throw new Error(`what is selected is ${selected}`);
    await v.page.evaluate(() => {
      const session = JSON.parse(sessionStorage.getItem('session'));
      sessionStorage.setItem('session', JSON.stringify({ ...session, token: 'x' }));
    });
    await v.open(`/t/${v.place.tenant}/production/flags/first-flag?tab=rules`);
    await v.button('Add rule').click();
    await v.field('Attribute').waitFor();
  },
};
