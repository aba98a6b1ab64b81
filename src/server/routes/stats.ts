import * as z from 'zod';
import { readerMemory } from '../memory-estimates.js';
import { shuttingDown } from '../openai/errors.js';
import { EventStream } from '../openai/event-stream.js';
import { STREAM_HEADERS } from '../openai/respond.js';
import { findGenerator } from '../openai/route-context.js';
import { optional } from '../openai/schemas/fields.js';
import { memoryFull } from '../request-memory.js';
import { defineRoute } from './route.js';

const query = (text: string) => z.strictObject({ model: optional(z.string(), text) });

export const statsRoute = defineRoute({
  method: 'get',
  path: '/stats',
  tags: ['Server'],
  summary: "Shows the batch manager's statistics of a model's latest iteration",
  description:
    'While nothing is in flight all counts are 0 and blocks are as they are; `Iteration Counter` and `Timestamp` stay those of ' +
    'the latest iteration.',
  query: query('A name that GET /v1/models lists. Not given: the first that generates text.'),
  responses: async () => (await import('../openai/answers/operations.js')).statsResponses(),
  handle: ({ query: { model } }, context) => {
    const feed = context.feeds.of(findGenerator(context, model));
    return new Response(feed.stats(), { headers: { 'content-type': 'application/json' } });
  },
});

export const statsStreamRoute = defineRoute({
  method: 'get',
  path: '/stats/stream',
  tags: ['Server'],
  summary: 'Streams what the engines do, as server-sent events',
  description:
    "`stats` carries the batch manager's statistics, a few times a second while iterations run and not while the engine is " +
    'idle. `formation` carries the requests in flight and who holds which blocks of the KV cache, as often, and ' +
    'every 5 seconds while nothing happens; where there are several API keys, only those of admins see the X-Request-Ids. ' +
    'A listener that is behind misses events; one that does not read is cut off.',
  query: query('A name that GET /v1/models lists. Not given: all that generate text.'),
  responses: async () => (await import('../openai/answers/operations.js')).statsStreamResponses(),
  handle: ({ query: { model }, exchange: { signal, connection, terms } }, context) => {
    if (context.state.status === 'draining') throw shuttingDown(context.state.drainEndsInMs);
    if (!terms.memory.raiseTo(readerMemory(0))) throw memoryFull();
    const feed = model === undefined ? null : context.feeds.of(findGenerator(context, model));
    const leave: (() => void)[] = [];
    const end = () => {
      for (const one of leave.splice(0)) one();
    };
    const stream = new EventStream(context.eventStream, { onGone: end, connection });
    signal.addEventListener('abort', end, { once: true });
    const close = () => {
      end();
      stream.close();
    };
    leave.push(context.state.onDrain(close));
    // An event is dropped while the reader is behind, or no memory is left: the next event is newer anyway.
    const send = (event: string) => {
      if (!stream.isBehind && terms.memory.raiseTo(readerMemory(event.length))) stream.write(event);
    };
    // A first comment makes the headers go out at once.
    send(': skein\n\n');
    const { isAdmin: showsLabels } = terms.caller;
    // A subscription to all models goes on when one is removed, and includes those added later.
    if (feed === null) leave.push(context.feeds.subscribe(send, { showsLabels }));
    else leave.push(feed.subscribe(send, { showsLabels, onEnd: close }));
    if (signal.aborted) end();
    return new Response(stream.body, { headers: STREAM_HEADERS });
  },
});
