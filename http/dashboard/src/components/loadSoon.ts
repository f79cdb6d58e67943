/**
 * Loads a part of the dashboard that the first page goes without: when it is wanted, and else a second later, so that it opens at once, also offline.
 * What was loaded is there without a wait. A failure is not cached.
 */
export function loadSoon<Part>(load: () => Promise<Part>): () => Promise<Part> {
  let loading: Promise<Part> | undefined;
  const loaded = () =>
    (loading ??= load().catch((error: unknown) => {
      loading = undefined;
      throw error;
    }));
  setTimeout(() => void loaded().catch(() => undefined), 1000);
  return loaded;
}
