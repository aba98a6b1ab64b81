import type { MiddlewareHandler } from 'hono';
import type { MemoryLedger } from './held-memory.js';
import { RequestMemory } from './request-memory.js';
import type { AppEnv } from './routes/route.js';

/** Opens an account of what a request makes the server hold; it is closed when the request is done with and its answer is out. */
export function holdMemory(ledger: MemoryLedger): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    const memory = new RequestMemory(ledger.open('request', c.get('caller').name), ledger.limit);
    c.set('memory', memory);
    const outgoing = c.env?.outgoing;
    // A client that leaves ends its connection at once; what was begun for it ends a moment later.
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
    } finally {
      isDone = true;
      isClosed ||= outgoing?.closed === true;
      settle();
    }
  };
}
