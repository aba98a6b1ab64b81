// A route handler of Next.js (App Router).      npm install skein next react react-dom
//
// `npx create-next-app` makes the project; one of `npm init -y` needs `npm pkg delete type`, since Next.js refuses routes there.
//
//     curl -N http://127.0.0.1:3000/api/chat -H 'content-type: application/json' \
//       -d '{"messages": [{"role": "user", "content": "Tell me a story about a cat"}]}'
import { type ChatMessage, InvalidRequestError, QueueFullError, Skein } from 'skein';

export const runtime = 'nodejs'; // not the edge: the engine is native code
export const dynamic = 'force-dynamic';

const MODEL = process.env.MODEL ?? 'node_modules/skein/models/demo/gosling';

/** One engine for the process: this module is loaded again whenever it changes during development. */
const shared = globalThis as { skein?: Promise<Skein> };

function engine(): Promise<Skein> {
  shared.skein ??= Skein.load({ model: MODEL, maxQueuedRequests: 100 }).catch((error: unknown) => {
    delete shared.skein; // the next request tries again
    throw error;
  });
  return shared.skein;
}

/** Answers { messages } with the text, as it is generated. */
export async function POST(request: Request): Promise<Response> {
  const body = (await request.json().catch(() => null)) as { messages?: ChatMessage[] } | null;
  const skein = await engine();
  try {
    const pieces = skein.generate({ messages: body?.messages, maxTokens: 200, signal: request.signal });
    // What is refused is refused before the first piece, when there can still be a status.
    let next = Promise.resolve(await pieces.next());
    const stream = new ReadableStream<Uint8Array>({
      async pull(controller) {
        const { done, value: piece } = await next;
        if (done || !piece) return controller.close();
        next = pieces.next();
        controller.enqueue(new TextEncoder().encode(piece.text));
      },
      cancel: async () => void (await pieces.return()), // a client that leaves frees its memory
    });
    return new Response(stream, { headers: { 'content-type': 'text/plain; charset=utf-8' } });
  } catch (error) {
    if (error instanceof InvalidRequestError) return Response.json({ error: error.message }, { status: 400 });
    if (error instanceof QueueFullError) {
      const headers = { 'retry-after': String(Math.ceil((error.retryAfterMs ?? 1000) / 1000)) };
      return Response.json({ error: error.message }, { status: 429, headers });
    }
    throw error;
  }
}
