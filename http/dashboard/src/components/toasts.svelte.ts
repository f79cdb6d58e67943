/** What is told at the edge of the window for a moment, beside what the person goes on with. */
export type Toast = {
  /** A later one of the same subject takes its place. */
  subject: string;
  text: string;
  /** Whether it reports a failure: it then stays until the person closes it. */
  bad?: boolean;
  /** Undoes what it reports. The toast that it returns is shown next. */
  undo?: () => Promise<Toast>;
  /** Leads to more about it. */
  link?: { name: string; href: string };
};

const most = 3; // at once

class Toasts {
  /** The newest last. */
  shown = $state.raw<Toast[]>([]);

  show(toast: Toast): void {
    this.shown = [...this.shown.filter(({ subject }) => subject !== toast.subject), toast].slice(-most);
  }

  close(closed: Toast): void {
    this.shown = this.shown.filter((toast) => toast !== closed);
  }

  /** Takes away what is told of a subject, as it is about to change again. */
  clear(subject: string): void {
    this.shown = this.shown.filter((toast) => toast.subject !== subject);
  }

  clearAll(): void {
    this.shown = [];
  }
}

export const toasts = new Toasts();
