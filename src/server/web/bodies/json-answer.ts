import { setImmediate as nextTurn } from 'node:timers/promises';
import { jsonParts } from './json-parts.js';

/** Characters of an answer that are made in one turn; a shorter answer is sent whole. */
export const ANSWER_SLICE = 64 * 1024;

/**
 * Makes an answer of JSON. A short one is a text, with its length. Of a longer one the first slice is made here, so
 * that errors are known before anything is sent, and each further one in a turn of its own, once the client has read
 * the one before.
 * @param value may hold lists and objects that are made as they are written (JsonList, JsonObject).
 */
export function jsonAnswer(value: unknown, { status = 200 }: { status?: number } = {}): Response {
  const slices = jsonSlices(jsonParts(value));
  const first = slices.next().value ?? '';
  const second = first.length < ANSWER_SLICE ? undefined : slices.next().value;
  const headers = { 'content-type': 'application/json' };
  if (second === undefined) return new Response(first, { status, headers });
  return new Response(inTurns([first, second], slices), { status, headers });
}

/** Joins parts to slices of at least ANSWER_SLICE characters, except for the last one. */
function* jsonSlices(parts: Iterable<string>): Generator<string, undefined, undefined> {
  let slice = '';
  for (const part of parts) {
    slice += part;
    if (slice.length < ANSWER_SLICE) continue;
    yield slice;
    slice = '';
  }
  if (slice !== '') yield slice;
  return undefined;
}

/** Makes the JSON of a value as one text, in several turns of the event loop. */
export async function jsonInTurns(value: unknown): Promise<string> {
  let text = '';
  for (const slice of jsonSlices(jsonParts(value))) {
    text += slice;
    if (slice.length >= ANSWER_SLICE) await nextTurn();
  }
  return text;
}

function inTurns(begun: string[], slices: Iterator<string, undefined>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        await nextTurn();
        const slice = begun.shift() ?? slices.next().value;
        if (slice === undefined) controller.close();
        else controller.enqueue(encoder.encode(slice));
      },
      cancel() {
        slices.return?.();
      },
    },
    // No slice is made ahead of the reader.
    { highWaterMark: 0 },
  );
}
