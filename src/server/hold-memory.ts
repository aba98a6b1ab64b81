import type { MiddlewareHandler } from 'hono';
import type { MemoryLedger } from './held-memory.js';
import { RequestMemory } from './request-memory.js';
import type { AppEnv } from './routes/route.js';

/**
 * Opens an account of the memory that a request makes the server hold; it is closed when the request is done and its
 * answer is out.
 */
export function holdMemory(ledger: MemoryLedger): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    const memory = new RequestMemory(ledger.open('request', c.get('caller').name), ledger.limit);
    c.set('memory', memory);
    const outgoing = c.env?.outgoing;
    // A client that leaves ends its connection at once; the work begun for it ends a moment later.
    let isDone = false;
    let isClosed = outgoing === undefined;
    const settle = () => {
      if (isDone && isClosed) memory.release();
    };
    outgoing?.once('close', () => {
      isClosed = true;
      settle();
    });
    try {
      await next();
      // Without a socket, where a program calls the app itself, the answer is out when its body has been read.
      if (outgoing === undefined && c.res.body !== null) {
        isClosed = false;
        const body = followed(c.res.body, () => {
          isClosed = true;
          settle();
        });
        c.res = new Response(body, c.res);
      }
    } finally {
      isDone = true;
      isClosed ||= outgoing?.closed === true;
      settle();
    }
  };
}

/** Passes the body on unchanged; `onEnd` is called when it has been read, or nobody wants the rest. */
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
