export type ServerEvent = { id: string; data: string; retry?: number };

/** Parses the server-sent events of a response as they arrive. A comment or a bare id yields an event without data, so that a quiet stream differs from a dead one. */
export async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let left = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (left + decoder.decode(value, { stream: true })).replaceAll('\r\n', '\n').split('\n\n');
    left = blocks.pop()!;
    for (const block of blocks) yield eventOf(block);
  }
}

function eventOf(block: string): ServerEvent {
  const event: ServerEvent = { id: '', data: '' };
  for (const line of block.split('\n')) {
    const [, name, value = ''] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
    if (name === 'id') event.id = value;
    if (name === 'data') event.data += (event.data && '\n') + value;
    if (name === 'retry') event.retry = Number(value);
  }
  return event;
}
