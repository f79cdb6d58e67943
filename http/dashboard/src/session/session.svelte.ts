import { Failure, failureOf } from '../api/failure';
import type { components } from '../api/schema';
import { service, stored } from '../service';
import { Tabs } from './tabs';

type Answer = components['schemas']['SessionBody'];

export type Session = Answer & { endsAt: number };

const key = stored('session');
const lock = stored('renew');
const renewBefore = 60_000; // a token is renewed this many milliseconds before it expires

/** The signed-in person. Tokens are in this tab's sessionStorage, and in no URL. */
class SignedIn {
  current = $state.raw<Session | undefined>(read());
  /** Whether the service ended the session, not the person. */
  ended = $state(false);
  #renewing: Promise<string | undefined> | undefined;
  /** The refresh token of a session that the person ended, until its renewal is known. */
  #ending: string | undefined;
  #tabs = new Tabs<Session>({
    theirs: (renewed, of) => {
      if (of === this.current?.refreshToken) this.#keep(renewed);
      else if (of === this.#ending) this.#endRenewed(renewed, of);
    },
    ended: (refreshToken) => {
      if (refreshToken === this.current?.refreshToken) this.#keep(undefined);
    },
    asked: () => this.current,
  });

  get signedIn(): boolean {
    return this.current !== undefined;
  }

  get user() {
    return this.current?.user;
  }

  /** Takes over the session of another tab of this browser, unless this tab has a valid one. */
  async adopt(): Promise<void> {
    if (!this.current) this.#keep(await this.#tabs.ask(() => true));
    else if (!holds(this.current)) await this.#adoptLater(this.current);
  }

  // A restored tab has an old session whose refresh token may have been used since. It asks other tabs for the current session first, because the service takes a second use for a theft.
  async #adoptLater({ user, endsAt }: Session): Promise<void> {
    const later = await this.#tabs.ask((theirs) => theirs.user.id === user.id && theirs.endsAt > endsAt);
    if (later && this.current?.user.id === user.id && this.current.endsAt < later.endsAt) this.#keep(later);
  }

  signIn(email: string, password: string): Promise<void> {
    return this.#open('/auth/signin', { email, password });
  }

  signUp(email: string, password: string, displayName: string): Promise<void> {
    return this.#open('/auth/signup', displayName ? { email, password, displayName } : { email, password });
  }

  /** Ends the session here, in all tabs that share it, and at the service. */
  async signOut(): Promise<void> {
    const ending = this.current;
    if (!ending) return;
    this.#tabs.end(ending.refreshToken);
    this.#keep(undefined);
    this.#ending = ending.refreshToken;
    await this.#endAtService(ending).catch(() => undefined); // this tab no longer has the tokens
  }

  // The service ends a session only for a valid token.
  async #endAtService(ending: Session): Promise<void> {
    if (holds(ending, 5_000)) return logOut(ending);
    await this.#renewing?.catch(() => undefined);
    await alone(async () => {
      await this.#tabs.settled();
      const { refreshToken } = ending;
      if (refreshToken === this.#ending) await logOut(await post('/api/v1/auth/refresh', { refreshToken }));
    });
  }

  // A renewal in progress must not undo a sign-out.
  #endRenewed(renewed: Session, of: string): void {
    if (of === this.#ending) this.#ending = undefined;
    this.#tabs.end(renewed.refreshToken);
    void logOut(renewed).catch(() => undefined);
  }

  /** Returns a token that is valid for at least this many milliseconds, or none if signed out. */
  async token(left = renewBefore): Promise<string | undefined> {
    const { current } = this;
    if (!current || holds(current, left)) return current?.token;
    return this.renew();
  }

  /** Renews the session's tokens. Concurrent callers share one renewal. */
  renew(): Promise<string | undefined> {
    this.#renewing ??= this.#renew().finally(() => (this.#renewing = undefined));
    return this.#renewing;
  }

  // A refresh token works once: one of the tabs that share a session renews it and tells the others.
  async #renew(): Promise<string | undefined> {
    const before = this.current?.refreshToken;
    const { locks } = navigator;
    if (!locks) return this.#trade(before); // browsers have no locks over plain HTTP
    let first = true;
    await locks.request(lock, { ifAvailable: true }, async (held) => {
      first = held !== null;
      if (!first) return;
      await this.#tabs.settled();
      await this.#trade(before);
    });
    if (first) return this.current?.token;
    // The next tab with the lock renews only if its token has not changed, after it would have received a new one.
    await this.#tabs.renewal(locks.request(lock, () => undefined));
    return locks.request(lock, () => this.#trade(before));
  }

  async #trade(before: string | undefined): Promise<string | undefined> {
    if (this.current && this.current.refreshToken === before) await this.#adoptLater(this.current);
    const { current } = this;
    if (!current || (current.refreshToken !== before && holds(current))) return current?.token;
    const { refreshToken } = current;
    try {
      const renewed = await post('/api/v1/auth/refresh', { refreshToken });
      if (this.current?.refreshToken === refreshToken) {
        this.#tabs.tell(renewed, refreshToken);
        this.#keep(renewed);
      } else this.#endRenewed(renewed, refreshToken);
    } catch (error) {
      if (!(error instanceof Failure) || (error.status !== 401 && error.status !== 403)) throw error;
      if (this.current?.refreshToken === refreshToken) {
        this.#keep(undefined);
        this.ended = true;
      }
    }
    return this.current?.token;
  }

  async #open(path: string, sent: object): Promise<void> {
    this.#keep(await post(path, sent));
  }

  #keep(session: Session | undefined): void {
    this.current = session;
    this.ended = false;
    if (session) sessionStorage.setItem(key, JSON.stringify(session));
    else sessionStorage.removeItem(key);
  }
}

/** Whether the access token is valid for this many milliseconds. */
const holds = ({ endsAt }: Session, left = renewBefore): boolean => Date.now() < endsAt - left;

/** Runs an action while no tab of this browser renews a token. Without locks, over plain HTTP, it just runs. */
async function alone(act: () => Promise<void>): Promise<void> {
  const { locks } = navigator;
  await (locks ? locks.request(lock, act) : act());
}

async function logOut({ token }: Session): Promise<void> {
  const headers = { Authorization: `Bearer ${token}` };
  await fetch(`${service}/api/v1/auth/logout`, { method: 'POST', headers, keepalive: true });
}

async function post(path: string, sent: object): Promise<Session> {
  const response = await fetch(service + path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(sent),
  }).catch(() => {
    throw new Failure(0);
  });
  const got: unknown = await response.json().catch(() => undefined);
  if (!response.ok) throw failureOf(response, got);
  const session = got as Answer;
  return { ...session, endsAt: Date.now() + session.expiresIn * 1000 };
}

function read(): Session | undefined {
  const text = sessionStorage.getItem(key);
  return text ? (JSON.parse(text) as Session) : undefined;
}

export const session = new SignedIn();
