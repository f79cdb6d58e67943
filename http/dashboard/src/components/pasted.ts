/** Splits a pasted list: a text on each line or, with commas, several. A text in quotes may contain commas. */
export function pastedTexts(pasted: string, commas: boolean): string[] {
  const lines = pasted.split(/[\n\r\t]+/);
  const texts = commas ? lines.flatMap(splitLine) : lines;
  return texts.map((text) => text.trim()).filter(Boolean);
}

function splitLine(line: string): string[] {
  const texts: string[] = [];
  let quoted: string[] = []; // the parts of a text whose quotes are open
  for (const part of line.split(',')) {
    const odd = (part.replace(/\\./g, '').split('"').length - 1) % 2 === 1;
    if (quoted.length) {
      quoted.push(part);
      if (odd) {
        texts.push(quoted.join(','));
        quoted = [];
      }
    } else if (odd) quoted = [part];
    else texts.push(part);
  }
  return [...texts, ...quoted]; // quotes that stay open are part of the texts
}
