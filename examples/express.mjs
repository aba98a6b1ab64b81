// @ts-check
// A chat route of Express.      npm install skein express
//
//     node express.mjs
//     curl -N http://127.0.0.1:3000/chat -H 'content-type: application/json' \
//       -d '{"messages": [{"role": "user", "content": "Tell me a story about a cat"}]}'
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import express from 'express';
import { InvalidRequestError, QueueFullError, Skein } from 'skein';

const demo = new URL('models/demo/gosling', import.meta.resolve('skein/package.json'));
const skein = await Skein.load({ model: process.env.MODEL ?? fileURLToPath(demo), maxQueuedRequests: 100 });

const app = express();
app.use(express.json());

app.post('/chat', async (request, response, next) => {
  const gone = new AbortController();
  response.once('close', () => gone.abort()); // a client that leaves frees its memory within one iteration
  try {
    const { messages } = request.body ?? {};
    const pieces = skein.generate({ messages, maxTokens: 200, temperature: 0.7, signal: gone.signal });
    // What is refused is refused before the first piece, when there can still be a status.
    const first = await pieces.next();
    response.type('text/plain; charset=utf-8');
    await pipeline(Readable.from(texts(first, pieces)), response); // waits where the client reads slowly
  } catch (error) {
    if (!gone.signal.aborted) next(error);
  }
});

/**
 * @param {IteratorResult<import('skein').TextPiece, void>} first
 * @param {AsyncGenerator<import('skein').TextPiece, void>} pieces
 */
async function* texts(first, pieces) {
  if (first.done) return;
  yield first.value.text;
  for await (const piece of pieces) yield piece.text;
}

/** @type {import('express').ErrorRequestHandler} */
const onError = (error, _request, response, next) => {
  if (response.headersSent) return next(error); // Express ends the connection: the client sees that it is not whole
  if (error instanceof QueueFullError) {
    response.set('retry-after', String(Math.ceil((error.retryAfterMs ?? 1000) / 1000)));
    return void response.status(429).json({ error: error.message });
  }
  const status = error instanceof InvalidRequestError ? 400 : (error.status ?? 500);
  response.status(status).json({ error: status < 500 ? error.message : 'Something went wrong.' });
  if (status >= 500) console.error(error);
};
app.use(onError);

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  const address = /** @type {import('node:net').AddressInfo} */ (server.address());
  console.log(`POST http://127.0.0.1:${address.port}/chat`);
});

process.once('SIGTERM', () => {
  server.close(() => skein.close()); // answers under way end first
});
