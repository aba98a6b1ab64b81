// @ts-check
// A chat handler from Request to Response, in Hono.      npm install skein hono @hono/node-server
//
//     node hono.mjs
//     curl -N http://127.0.0.1:3000/chat -H 'content-type: application/json' \
//       -d '{"messages": [{"role": "user", "content": "Tell me a story about a cat"}]}'
import { fileURLToPath } from 'node:url';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { InvalidRequestError, QueueFullError, Skein } from 'skein';

const demo = new URL('models/demo/gosling', import.meta.resolve('skein/package.json'));
const skein = await Skein.load({ model: process.env.MODEL ?? fileURLToPath(demo), maxQueuedRequests: 100 });

/**
 * Answers { messages } with server-sent events: a JSON string for each piece of text, then [DONE].
 * @param {Request} request
 */
async function chat(request) {
  /** @type {{ messages?: import('skein').ChatMessage[] } | null} */
  const body = /** @type {any} */ (await request.json().catch(() => null));
  const gone = new AbortController();
  const pieces = skein.generate({ messages: body?.messages, maxTokens: 200, signal: gone.signal });
  // What is refused is refused before the first piece, when there can still be a status.
  const first = await pieces.next();
  const encoder = new TextEncoder();
  let next = Promise.resolve(first);
  const stream = new ReadableStream({
    // Called when the client can take more: a slow reader holds back its own answer only.
    async pull(controller) {
      const { done, value: piece } = await next;
      if (done) {
        controller.enqueue(encoder.encode('data: [DONE]\n\n'));
        return controller.close();
      }
      next = pieces.next();
      controller.enqueue(encoder.encode(`data: ${JSON.stringify(piece.text)}\n\n`));
    },
    cancel: () => gone.abort(), // a client that leaves frees its memory within one iteration
  });
  return new Response(stream, { headers: { 'content-type': 'text/event-stream' } });
}

const app = new Hono();
app.post('/chat', ({ req }) => chat(req.raw));
app.onError((error, context) => {
  if (error instanceof InvalidRequestError) return context.json({ error: error.message }, 400);
  if (error instanceof QueueFullError) {
    const seconds = String(Math.ceil((error.retryAfterMs ?? 1000) / 1000));
    return context.json({ error: error.message }, 429, { 'retry-after': seconds });
  }
  console.error(error);
  return context.json({ error: 'Something went wrong.' }, 500);
});

const server = serve(
  { fetch: app.fetch, hostname: '127.0.0.1', port: Number(process.env.PORT ?? 3000) },
  ({ port }) => console.log(`POST http://127.0.0.1:${port}/chat`),
);

process.once('SIGTERM', () => {
  server.close(() => skein.close()); // answers under way end first
});
