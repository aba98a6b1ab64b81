// @ts-check
// The whole API of `skein serve` inside an Express app.      npm install skein express
//
//     node express.mjs
//     curl http://127.0.0.1:3000/llm/v1/chat/completions -H 'content-type: application/json' \
//       -d '{"model": "gosling", "messages": [{"role": "user", "content": "Tell me a story about a cat"}]}'
import { fileURLToPath } from 'node:url';
import express from 'express';
import { Skein } from 'skein';

const demo = new URL('models/demo/gosling', import.meta.resolve('skein/package.json'));
const skein = await Skein.load({ model: process.env.MODEL ?? fileURLToPath(demo), maxQueuedRequests: 100 });

const app = express();
app.use('/llm', skein.listener); // in front of express.json(), since it reads the bodies itself
app.use(express.json());
app.get('/', (_request, response) => void response.send('The API is at /llm/v1.'));

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  const address = /** @type {import('node:net').AddressInfo} */ (server.address());
  console.log(`API at http://127.0.0.1:${address.port}/llm/v1`);
});

process.once('SIGTERM', () => {
  server.close(() => skein.close()); // answers under way end first
});
