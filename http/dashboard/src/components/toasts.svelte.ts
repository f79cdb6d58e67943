/** A short message at the edge of the window. */
export type Toast = {
  /** A later one with the same subject replaces it. */
  subject: string;
  text: string;
  /** Whether it reports a failure: it then stays until the person closes it. */
  bad?: boolean;
  /** Undoes what it reports. The toast that it returns is shown next. */
  undo?: () => Promise<Toast>;
  /** A link to more about it. */
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

  /** Removes the toast of a subject that is about to change again. */
  clear(subject: string): void {
    this.shown = this.shown.filter((toast) => toast.subject !== subject);
  }

  clearAll(): void {
    this.shown = [];
  }
}

export const toasts = new Toasts();
