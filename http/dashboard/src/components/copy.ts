/** Copies a text. Where the browser refuses, as over plain HTTP, the element that shows it is selected, to be copied by hand, and the answer is false. */
export async function copyText(text: string, shown: Element | undefined): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    if (shown) getSelection()?.selectAllChildren(shown);
    return false;
  }
}
