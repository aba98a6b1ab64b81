import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import type { Trouble } from '../fleet/fleet.js';

/** A call as it is sent. */
export interface Call {
  method: 'GET' | 'POST';
  path: string;
  /** JSON, or a form. */
  body?: object | FormData;
}

/** What came of a call: the whole answer, or what came before its trouble. */
export type Outcome =
  | { kind: 'whole'; events: unknown[] | null; value: unknown }
  | (Trouble & { events: unknown[] });

/** Seconds without a byte after which an answer counts as lost: longer than any fault. */
const MAX_SILENCE_S = 150;

/**
 * Makes a call on a connection of its own, and reads its answer to the end.
 * @param onEvent called with each event of a stream
 */
export async function call(
  address: string,
  { method, path, body }: Call,
  onEvent: (event: unknown) => void = () => {},
): Promise<Outcome> {
  const events: unknown[] = [];
  try {
    const { headers, bytes } = await encoded(body);
    const incoming = await new Promise<IncomingMessage>((resolve, reject) => {
      const outgoing = httpRequest(`${address}${path}`, { method, headers, agent: false }, resolve);
      watchSilence(outgoing);
      outgoing.on('error', reject);
      outgoing.end(bytes);
    });
    const status = incoming.statusCode!;
    const isToRetry = incoming.headers['retry-after'] !== undefined;
    if (status < 200 || status >= 300)
      return { kind: 'refused', status, isToRetry, text: await textOf(incoming), events };
    if (!/event-stream/.test(incoming.headers['content-type'] ?? '')) {
      const text = await textOf(incoming);
      const isJson = /^application\/json(;|$)/.test(incoming.headers['content-type'] ?? '');
      return { kind: 'whole', events: null, value: isJson ? JSON.parse(text) : text };
    }
    return await readStream(incoming, events, onEvent);
  } catch (error) {
    return { kind: 'broken', status: null, isToRetry: false, text: String(error), events };
  }
}

/** Gives a call up that gets nothing. Seconds in which this program itself was stopped, with all others, do not count. */
function watchSilence(outgoing: ClientRequest): void {
  let silentS = 0;
  let bytesBefore = 0;
  const look = () => {
    const bytes = outgoing.socket?.bytesRead ?? 0;
    silentS = bytes === bytesBefore ? silentS + 1 : 0;
    bytesBefore = bytes;
    if (silentS >= MAX_SILENCE_S) outgoing.destroy(new Error(`nothing came in ${MAX_SILENCE_S} s`));
  };
  const timer = setInterval(look, 1_000);
  outgoing.once('close', () => clearInterval(timer));
}

async function encoded(body: Call['body']): Promise<{ headers: Record<string, string>; bytes?: Buffer }> {
  if (body === undefined) return { headers: {} };
  const sent =
    body instanceof FormData
      ? new Response(body)
      : new Response(JSON.stringify(body), { headers: { 'content-type': 'application/json' } });
  const bytes = Buffer.from(await sent.arrayBuffer());
  return {
    headers: { 'content-type': sent.headers.get('content-type')!, 'content-length': String(bytes.length) },
    bytes,
  };
}

async function textOf(incoming: IncomingMessage): Promise<string> {
  let text = '';
  for await (const part of incoming.setEncoding('utf8')) text += part;
  if (!incoming.complete) throw new Error('the connection ended within the answer');
  return text;
}

async function readStream(
  incoming: IncomingMessage,
  events: unknown[],
  onEvent: (event: unknown) => void,
): Promise<Outcome> {
  let rest = '';
  let hasEnded = false;
  for await (const part of incoming.setEncoding('utf8')) {
    rest += part;
    const frames = rest.split('\n\n');
    rest = frames.pop()!;
    for (const frame of frames) {
      const data = /^data: (.*)$/m.exec(frame)?.[1];
      if (data === undefined) continue;
      if (hasEnded) return ended('wrong', `more came after the end: ${data}`, events);
      if (data === '[DONE]') {
        hasEnded = true;
        continue;
      }
      const event = JSON.parse(data) as { error?: { code?: unknown; message?: string } };
      if (event.error !== undefined) {
        const { code } = event.error;
        const status = typeof code === 'number' ? code : 500;
        return { kind: 'refused', status, isToRetry: false, text: data, events };
      }
      events.push(event);
      onEvent(event);
    }
  }
  if (!hasEnded) return ended('broken', 'the stream ended without [DONE]', events);
  return { kind: 'whole', events, value: null };
}

const ended = (kind: 'broken' | 'wrong', text: string, events: unknown[]): Outcome => ({
  kind,
  status: null,
  isToRetry: false,
  text,
  events,
});
