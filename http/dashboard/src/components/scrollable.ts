/** Lets the keyboard scroll an element while its children overflow it. */
export function scrollable(node: HTMLElement): () => void {
  const observer = new ResizeObserver(() => {
    const overflows = node.scrollHeight > node.clientHeight || node.scrollWidth > node.clientWidth;
    if (overflows) node.tabIndex = 0;
    else node.removeAttribute('tabindex');
  });
  for (const box of [node, ...node.children]) observer.observe(box);
  return () => observer.disconnect();
}
