import type { ServerResponse } from 'node:http';
import type { MiddlewareHandler } from 'hono';
import type { AppEnv } from '../app-env.js';
import type { MemoryLedger } from './held-memory.js';
import { RequestMemory } from './request-memory.js';

/**
 * Opens an account of the memory that a request makes the server hold; it is closed when the request is done and its
 * answer is out.
 */
export function holdMemory(ledger: MemoryLedger): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    const memory = new RequestMemory(ledger.open('request', c.get('caller').name), ledger.limit);
    c.set('memory', memory);
    const outgoing = c.env?.outgoing;
    if (outgoing !== undefined) {
      await heldWhile(memory, outgoing, next);
      return;
    }
    // Without a socket, where a program calls the app itself, the answer is out when its body has been read.
    let isRead = true;
    try {
      await next();
      if (c.res.body !== null) {
        isRead = false;
        c.res = new Response(
          followed(c.res.body, () => memory.release()),
          c.res,
        );
      }
    } finally {
      if (isRead) memory.release();
    }
  };
}

/**
 * Answers a request, and releases its memory when that is done and the answer is out. A client that leaves ends its connection at once;
 * the work begun for it ends a moment later.
 */
export async function heldWhile(
  memory: RequestMemory,
  outgoing: ServerResponse,
  answer: () => Promise<void>,
): Promise<void> {
  let isDone = false;
  outgoing.once('close', () => {
    if (isDone) memory.release();
  });
  try {
    await answer();
  } finally {
    isDone = true;
    if (outgoing.closed) memory.release();
  }
}

/** Passes the body on unchanged; `onEnd` is called when it has been read, or the rest is not wanted. */
function followed(body: ReadableStream<Uint8Array>, onEnd: () => void): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (!done) return controller.enqueue(value);
          controller.close();
        } catch (error) {
          controller.error(error);
        }
        onEnd();
      },
      cancel(reason) {
        onEnd();
        return reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
}
