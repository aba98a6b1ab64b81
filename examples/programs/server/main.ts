// A server with your own route and OpenAI's API, for one model in this process.
//
//     npm install && npm start
//     curl -N http://127.0.0.1:3000/ask -d '{"question": "Why is the sky blue?"}'
//     curl http://127.0.0.1:3000/llm/v1/models
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Skein, SkeinError } from 'skein';
import * as z from 'zod';

const PORT = Number(process.env.PORT ?? 3000);
const MODEL = process.env.MODEL ?? 'HuggingFaceTB/SmolLM2-135M-Instruct';
const MAX_BODY_BYTES = 100_000;

const question = z.object({ question: z.string().min(1).max(4000) });

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // A body that is too long is not read to its end, and its connection is closed behind the answer.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    bytes += (chunk as Buffer).length;
    if (bytes > MAX_BODY_BYTES) throw new RangeError(`The body has more than ${MAX_BODY_BYTES} bytes.`);
    chunks.push(chunk as Buffer);
  }
  return JSON.parse(Buffer.concat(chunks).toString('utf8'));
}

/** Streams an answer as text. A client that leaves ends it. */
async function ask(skein: Skein, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  try {
    const asked = question.parse(await bodyOf(request));
    const messages = [{ role: 'user', content: asked.question }];
    for await (const { text } of skein.generate({ messages, maxTokens: 400, signal: gone.signal })) {
      if (!response.headersSent) response.setHeader('content-type', 'text/plain; charset=utf-8');
      response.write(text);
    }
  } catch (error) {
    const isTheirs =
      error instanceof SkeinError || error instanceof z.ZodError || error instanceof SyntaxError;
    const status = isTheirs || error instanceof RangeError ? 400 : 500;
    if (!response.headersSent) response.writeHead(status, { connection: 'close' });
    response.write(`${error instanceof Error ? error.message : String(error)}\n`);
  }
  response.end();
}

async function main(): Promise<void> {
  const skein = await Skein.load({ model: MODEL });
  const server = createServer((request, response) => {
    if (request.method === 'POST' && request.url === '/ask') void ask(skein, request, response);
    else if (request.url?.startsWith('/llm/')) {
      request.url = request.url.slice('/llm'.length);
      void skein.listener(request, response);
    } else response.writeHead(404).end("POST /ask, or OpenAI's API below /llm/v1\n");
  });
  server.listen(PORT, '127.0.0.1', () => {
    const address = server.address();
    console.log(`http://127.0.0.1:${typeof address === 'object' ? address?.port : PORT}`);
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => server.close(() => void skein.close()));
}

void main();
