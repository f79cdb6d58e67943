/** Copies a text. If the browser refuses, as over plain HTTP, it selects the element for a copy by hand and returns false. */
export async function copyText(text: string, shown: Element | undefined): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    if (shown) getSelection()?.selectAllChildren(shown);
    return false;
  }
}
