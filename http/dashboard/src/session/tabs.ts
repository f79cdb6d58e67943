import { stored } from '../service';

type Message<S> =
  | { kind: 'ask' }
  | { kind: 'have'; session: S }
  | { kind: 'renewed'; session: S; of: string }
  | { kind: 'ended'; of: string };

type Heard<S> = {
  theirs: (renewed: S, of: string) => void;
  ended: (of: string) => void;
  asked: () => S | undefined;
};

const answerTimeout = 150; // milliseconds to wait for other tabs

/** The dashboard's other tabs in this browser. Tabs exchange sessions only through this. */
export class Tabs<S> {
  #channel = new BroadcastChannel(stored('session'));
  #waiting: ((session: S) => void) | undefined;
  #awaited: (() => void) | undefined;

  constructor(heard: Heard<S>) {
    this.#channel.onmessage = ({ data }: MessageEvent<Message<S>>) => {
      switch (data.kind) {
        case 'ask': {
          const session = heard.asked();
          if (session) this.#channel.postMessage({ kind: 'have', session } satisfies Message<S>);
          break;
        }
        case 'have':
          this.#waiting?.(data.session);
          break;
        case 'renewed':
          heard.theirs(data.session, data.of);
          this.#awaited?.();
          break;
        case 'ended':
          heard.ended(data.of);
      }
    };
  }

  /** Returns the session of another tab, if a wanted one arrives soon. */
  ask(wanted: (session: S) => boolean): Promise<S | undefined> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(undefined), answerTimeout);
      this.#waiting = (session) => {
        if (!wanted(session)) return;
        clearTimeout(timer);
        resolve(session);
      };
      this.#channel.postMessage({ kind: 'ask' } satisfies Message<S>);
    });
  }

  tell(session: S, of: string): void {
    this.#channel.postMessage({ kind: 'renewed', session, of } satisfies Message<S>);
  }

  end(of: string): void {
    this.#channel.postMessage({ kind: 'ended', of } satisfies Message<S>);
  }

  /** Waits until earlier messages of other tabs have arrived. */
  settled(): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve));
  }

  /** Waits for the running renewal of another tab: until its result arrives, or shortly after its end. */
  renewal(underWay: Promise<unknown>): Promise<void> {
    return new Promise((resolve) => {
      this.#awaited = resolve;
      void underWay.then(() => setTimeout(resolve, answerTimeout));
    });
  }
}
