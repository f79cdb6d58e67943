import { authorized, type Schemas } from '../api/client';
import { asFailure, failureOf } from '../api/failure';
import { service } from '../service';
import { eventsOf } from './events';

export type StreamEvent = Schemas['StreamEvent'];

type Listener = {
  changed: (event: StreamEvent) => void;
  /** Called when the stream goes down or comes back. */
  unreachable: (unreachable: boolean) => void;
  /** Called when the service refuses the stream, now or later. */
  refused: () => void;
};

const silenceTimeout = 45_000; // milliseconds: three heartbeats
const longest = 10_000;

/** The stream of changes in a tenant, in all environments. It reconnects by itself and resumes after the last received event. */
export class Stream {
  #last = '';
  #retry = 2_000;
  #open: AbortController | undefined;

  constructor(
    readonly tenant: string,
    readonly listener: Listener,
  ) {}

  open(): void {
    if (this.#open) return;
    this.#open = new AbortController();
    void this.#follow(this.#open.signal);
  }

  close(): void {
    this.#open?.abort();
    this.#open = undefined;
  }

  async #follow(closed: AbortSignal): Promise<void> {
    for (let failures = 0; !closed.aborted;) {
      let pause = this.#retry;
      try {
        await this.#listen(closed, () => {
          failures = 0;
          this.listener.unreachable(false);
        });
      } catch (error) {
        if (closed.aborted) return;
        const failure = asFailure(error);
        if (!failure.transient && failure.status !== 500) return this.listener.refused();
        if (failure.unreachable) this.listener.unreachable(true);
        pause = Math.min(failure.retryAfter ? failure.retryAfter * 1000 : this.#retry * 2 ** failures, longest);
        failures++;
      }
      await rest(pause, closed);
    }
  }

  // Returns when the stream has ended. Throws if it could not be opened.
  async #listen(closed: AbortSignal, begun: () => void): Promise<void> {
    const silent = new AbortController();
    const signal = AbortSignal.any([closed, silent.signal]);
    let alarm = setTimeout(() => silent.abort(), silenceTimeout);
    try {
      const headers = {
        'X-Tenant-ID': this.tenant,
        'X-Environment': '*',
        ...(this.#last && { 'Last-Event-ID': this.#last }),
      };
      const response = await authorized(new Request(`${service}/api/v1/flags/stream`, { headers, signal }));
      if (!response.ok || !response.body) throw failureOf(response, await response.json().catch(() => undefined));
      begun();
      for await (const event of eventsOf(response.body)) {
        clearTimeout(alarm);
        alarm = setTimeout(() => silent.abort(), silenceTimeout);
        if (event.retry) this.#retry = event.retry;
        if (event.data) this.listener.changed(JSON.parse(event.data) as StreamEvent);
        if (event.id) this.#last = event.id;
      }
    } catch (error) {
      if (error instanceof TypeError) return; // it was interrupted
      if (!silent.signal.aborted) throw error;
    } finally {
      clearTimeout(alarm);
    }
  }
}

/** Waits, but at most until the browser is online again. */
function rest(milliseconds: number, closed: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const over = () => {
      clearTimeout(timer);
      removeEventListener('online', over);
      closed.removeEventListener('abort', over);
      resolve();
    };
    const timer = setTimeout(over, milliseconds);
    addEventListener('online', over);
    closed.addEventListener('abort', over);
  });
}
