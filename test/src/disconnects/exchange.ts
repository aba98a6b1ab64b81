import { connect } from 'node:net';
import type { Random } from '../../../tools/soak/random.js';
import type { Asked } from './requests.js';

/** Ways to be a client. The first three stay for the whole answer. */
export const WAYS = [
  'stays',
  'reads late',
  'shuts its side',
  'no body',
  'half a body, closed',
  'half a body, shut',
  'before headers',
  'in mid-frame',
  'shut and gone',
  'reset',
  'not reading',
] as const;
export type Way = (typeof WAYS)[number];

const STAYING: ReadonlySet<Way> = new Set(['stays', 'reads late']);

export function stays(way: Way): boolean {
  return STAYING.has(way);
}

/** All that a server says to one request, whose client leaves in its own way. */
export function exchange(port: number, asked: Asked, way: Way, random: Random): Promise<string> {
  const body = JSON.stringify(asked.body);
  const head = `POST ${asked.path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n`;
  const after = random.integer(1, 3000);
  const pauseMs = random.integer(10, 200);
  return new Promise((resolve) => {
    let said = '';
    const socket = connect(port, '127.0.0.1', () => {
      if (way === 'no body') return void socket.write(head, () => socket.destroy());
      if (way === 'half a body, closed')
        return void socket.write(head + body.slice(9), () => socket.destroy());
      if (way === 'half a body, shut') return void socket.end(head + body.slice(9));
      socket.write(head + body);
      if (way === 'shuts its side') socket.end();
      if (way === 'before headers') setImmediate(() => socket.destroy());
      if (way !== 'not reading' && way !== 'reads late') return;
      socket.pause();
      setTimeout(() => (way === 'reads late' ? socket.resume() : socket.destroy()), pauseMs);
    });
    socket.setEncoding('latin1').on('data', (data) => {
      said += data;
      if (said.length < after) return;
      if (way === 'in mid-frame') socket.destroy();
      if (way === 'reset') socket.resetAndDestroy();
      if (way === 'shut and gone') socket.end(() => setTimeout(() => socket.destroy(), pauseMs));
    });
    socket.on('error', () => {}).on('close', () => resolve(said));
  });
}

/** The body of an answer that came whole. */
export function bodyOf(said: string): string {
  const split = said.indexOf('\r\n\r\n');
  const head = said.slice(0, split).toLowerCase();
  if (!head.startsWith('http/1.1 200 ')) throw new Error(`Answered with ${said.slice(0, 600)}`);
  const rest = said.slice(split + 4);
  const text = head.includes('transfer-encoding: chunked') ? joined(rest) : rest;
  return Buffer.from(text, 'latin1').toString();
}

/** Chunks of HTTP without their sizes. */
function joined(chunks: string): string {
  let text = '';
  for (let at = 0; ; ) {
    const line = chunks.indexOf('\r\n', at);
    const size = Number.parseInt(chunks.slice(at, line), 16);
    if (line < 0 || Number.isNaN(size)) throw new Error(`An answer was cut off: ...${chunks.slice(-200)}`);
    if (size === 0) return text;
    text += chunks.slice(line + 2, line + 2 + size);
    at = line + 2 + size + 2;
  }
}
