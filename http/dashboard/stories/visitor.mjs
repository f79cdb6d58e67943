import { readFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export const password = 'correct horse';

/** A person at a browser. Errors in the console and violations of the page's policy fail the story. */
export class Visitor {
  wrong = [];

  /** refused are the error statuses that the story provokes; a browser reports them in its console. */
  static async come(browser, { refused = [], url = process.env.SERVICE_URL, ...options } = {}) {
    const v = new Visitor();
    v.url = url;
    v.context = await browser.newContext({
      viewport: { width: 1280, height: 800 },
      reducedMotion: 'reduce',
      ...options,
    });
    v.context.setDefaultTimeout(Number(process.env.PATIENCE ?? 300_000)); // milliseconds: a machine may be busy
    v.page = await v.context.newPage();
    v.page.on('pageerror', (error) => v.wrong.push(`uncaught: ${error.message}`));
    v.page.on('console', (message) => {
      const text = message.text();
      if (message.type() !== 'error' && message.type() !== 'warning') return;
      // The service of a busy machine answers 503. A page reads again, and one that does not keeps its story waiting.
      if (text.includes('status of 503 ')) return;
      if (refused.some((status) => text.includes(String(status)))) return;
      v.wrong.push(`${text} ${message.location().url}`);
    });
    return v;
  }

  /** Opens a page of the dashboard by its path. */
  async open(path = '') {
    await this.page.goto(`${this.url}/app${path}`);
  }

  button = (name) => this.page.getByRole('button', { name, exact: true });
  link = (name) => this.page.getByRole('link', { name, exact: true });
  field = (name) => this.page.getByLabel(name, { exact: true }).filter({ visible: true });
  heading = (name) => this.page.getByRole('heading', { name, exact: true });
  /** The switch of a flag, by default in the page's environment. */
  switch = (key, { environment = this.place.environment, checked } = {}) =>
    this.page.getByRole('switch', { name: `Switch ${key} on in ${environment}`, exact: true, checked });

  /** Waits until what has a label has the focus. */
  async focused(label) {
    await this.until(`the focus is on ${label}`, () =>
      this.field(label).evaluateAll((found) => found.includes(document.activeElement)),
    );
  }

  /** Signs up as somebody new, and comes to the flags. */
  async signUp(email) {
    await this.open('/sign-up');
    await this.fillSignUp(email);
    await this.heading('Flags').waitFor();
  }

  /** Fills in the page that signs up. */
  async fillSignUp(email = `${randomUUID()}@example.com`) {
    this.email = email;
    await this.field('Email').fill(email);
    await this.field('Password').fill(password);
    await this.button('Sign up').click();
    return email;
  }

  /** Fills in the page that signs in. */
  async fillSignIn(email = this.email) {
    await this.field('Email').fill(email);
    await this.field('Password').fill(password);
    await this.button('Sign in').click();
  }

  /** Switches a flag in production, where people are asked first. */
  async turn(name, reason = '') {
    await this.switch(name).click();
    const dialog = this.page.getByRole('dialog');
    await dialog.getByLabel('Reason').fill(reason);
    await dialog.getByRole('button', { name: /^Switch / }).click();
    await dialog.waitFor({ state: 'detached' });
  }

  /** Where the visitor is. */
  get place() {
    const [, tenant, environment] = /\/t\/([^/]+)\/([^/]+)/.exec(this.page.url()) ?? [];
    return { tenant, environment };
  }

  /** Calls the API as the visitor, beside the page: what others do meanwhile. */
  async call(method, path, body, reason, environment) {
    const key = new URL(this.url).pathname.replace(/\/$/, '') + 'session';
    const token = await this.page.evaluate((key) => JSON.parse(sessionStorage.getItem(key)).token, key);
    const response = await fetch(this.url + path, {
      method,
      headers: {
        Authorization: `Bearer ${token}`,
        'X-Tenant-ID': this.place.tenant,
        'Content-Type': 'application/json',
        ...(reason && { 'X-Change-Reason': Buffer.from(reason).toString('latin1') }),
        ...(environment && { 'X-Environment': environment }),
      },
      body: body && JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response.status === 204 ? undefined : response.json();
  }

  /** Waits until this many evaluations of a flag are counted. */
  async counted(key, n) {
    await this.until('the evaluations are counted', async () => {
      const { evaluations } = await this.call('GET', `/api/v1/flags/${key}/metrics`);
      return evaluations >= n;
    });
  }

  /** Waits until something holds, and returns it. */
  async until(what, holds) {
    const end = Date.now() + 300_000; // a machine may be busy
    for (;;) {
      const held = await holds();
      if (held) return held;
      if (Date.now() > end) throw new Error(`waited in vain until ${what}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Fails if axe finds something serious on the page, if a disabled button does not say why, or if the page is wider than the window. */
  async inspect() {
    const unexplained = () =>
      this.page
        .locator('button[disabled]')
        .evaluateAll((all) =>
          all.filter((b) => !b.title || b.title === (b.ariaLabel ?? b.textContent.trim())).map((b) => b.outerHTML),
        );
    // A button may be found disabled and looked at when it no longer is.
    const first = await unexplained();
    if (first.length && (await unexplained()).length)
      throw new Error(`disabled without a reason:\n${first.join('\n')}`);
    if (!(await this.page.evaluate(() => 'axe' in window))) await this.page.evaluate(axe);
    const { violations } = await this.page.evaluate(() =>
      window.axe.run({ resultTypes: ['violations'], preload: false }),
    );
    const serious = violations.filter((v) => v.impact === 'serious' || v.impact === 'critical');
    if (serious.length) {
      throw new Error(
        serious
          .map((v) => `${v.id}: ${v.help}\n${v.nodes.map((n) => `  ${n.html}\n  ${n.failureSummary}`).join('\n')}`)
          .join('\n'),
      );
    }
    const [wide, window] = await this.page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    if (wide > window) throw new Error(`the page is ${wide} px wide in a window of ${window}`);
  }

  /** A picture in the folder SHOTS, for people to look at. */
  async shot(name) {
    if (process.env.SHOTS) await this.page.screenshot({ path: `${process.env.SHOTS}/${name}.png` });
  }

  check() {
    if (this.wrong.length) throw new Error(`the console has\n${this.wrong.join('\n')}`);
  }

  async leave() {
    // A response that a story gives in place of the service may still be pending.
    for (const page of this.context.pages()) await page.unrouteAll({ behavior: 'ignoreErrors' });
    await this.context.close();
  }
}
