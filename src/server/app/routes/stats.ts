import * as z from 'zod';
import { optional } from '../../../schemas/fields.js';
import { findGenerator } from '../../answering/find-model.js';
import { STREAM_HEADERS } from '../../answering/respond.js';
import type { EventListener } from '../../feeds/model-feed.js';
import { shuttingDown } from '../../web/errors.js';
import { EventStream } from '../../web/event-stream.js';
import type { Exchange } from '../../web/exchange.js';
import { readerMemory } from '../../web/memory/memory-estimates.js';
import { memoryFull } from '../../web/memory/request-memory.js';
import { defineRoute, type ServerContext } from '../server-context.js';

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
  responses: async () => (await import('../answers.js')).statsResponses(),
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
    'A listener that falls behind misses events; one that does not read is cut off.',
  query: query('A name that GET /v1/models lists. Not given: all that generate text.'),
  responses: async () => (await import('../answers.js')).statsStreamResponses(),
  handle: ({ query: { model }, exchange }, context) => {
    refuseWhileDraining(context);
    const feed = model === undefined ? null : context.feeds.of(findGenerator(context, model));
    const { isAdmin: showsLabels } = exchange.terms.caller;
    return streamEvents(exchange, context, (send, close) => {
      // A subscription to all models goes on when one is removed, and includes those added later.
      if (feed === null) return context.feeds.subscribe(send, { showsLabels });
      return feed.subscribe(send, { showsLabels, onEnd: close });
    });
  },
});

export const modelsStreamRoute = defineRoute({
  method: 'get',
  path: '/stats/models/stream',
  tags: ['Server'],
  summary: 'Streams what all models do, of tensors and of texts, as server-sent events',
  description:
    '`models` carries state, instances, queue and batches of each version of each model, at once, then at most twice a second while ' +
    'something changes and every 5 seconds while nothing does. Of more than 50 versions it has the foremost 50, and the number of all. ' +
    'A listener that falls behind misses events; one that does not read is cut off.',
  responses: async () => (await import('../answers.js')).modelsStreamResponses(),
  handle: ({ exchange }, context) => {
    refuseWhileDraining(context);
    return streamEvents(exchange, context, (send) => context.repositoryFeed.subscribe(send));
  },
});

function refuseWhileDraining({ state }: ServerContext): void {
  if (state.status === 'draining') throw shuttingDown(state.drainEndsInMs);
}

/**
 * Answers with events until the reader leaves, the server drains, or `close` is called.
 * @param subscribe begins to send, and returns what ends it
 */
function streamEvents(
  { signal, connection, terms }: Exchange,
  context: ServerContext,
  subscribe: (send: EventListener, close: () => void) => () => void,
): Response {
  if (!terms.memory.raiseTo(readerMemory(0))) throw memoryFull();
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
  // An event is dropped while the reader lags, or no memory is left: the next event is newer anyway.
  const send = (event: string) => {
    if (!stream.isBehind && terms.memory.raiseTo(readerMemory(event.length))) stream.write(event);
  };
  // A first comment makes the headers go out at once.
  send(': skein\n\n');
  leave.push(subscribe(send, close));
  if (signal.aborted) end();
  return new Response(stream.body, { headers: STREAM_HEADERS });
}
