// @ts-check
// The whole API of `skein serve` inside a Hono app.      npm install skein hono @hono/node-server
//
//     node hono.mjs
//     curl http://127.0.0.1:3000/llm/v1/chat/completions -H 'content-type: application/json' \
//       -d '{"model": "gosling", "messages": [{"role": "user", "content": "Tell me a story about a cat"}]}'
import { fileURLToPath } from 'node:url';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { Skein } from 'skein';

const demo = new URL('models/demo/gosling', import.meta.resolve('skein/package.json'));
const skein = await Skein.load({ model: process.env.MODEL ?? fileURLToPath(demo), maxQueuedRequests: 100 });

const app = new Hono();
app.mount('/llm', (request) => skein.fetch(request));
app.get('/', (context) => context.text('The API is at /llm/v1.'));

const server = serve(
  { fetch: app.fetch, hostname: '127.0.0.1', port: Number(process.env.PORT ?? 3000) },
  ({ port }) => console.log(`API at http://127.0.0.1:${port}/llm/v1`),
);

process.once('SIGTERM', () => {
  server.close(() => skein.close()); // answers under way end first
});
