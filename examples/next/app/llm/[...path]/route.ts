// The whole API of `skein serve` as a route of Next.js (App Router).      npm install skein next react react-dom
//
// `npx create-next-app` makes the project; one of `npm init -y` needs `npm pkg delete type`, since Next.js refuses routes there.
//
//     curl http://127.0.0.1:3000/llm/v1/chat/completions -H 'content-type: application/json' \
//       -d '{"model": "gosling", "messages": [{"role": "user", "content": "Tell me a story about a cat"}]}'
import { Skein } from 'skein';

export const runtime = 'nodejs'; // not the edge: the engine is native code
export const dynamic = 'force-dynamic';

const MODEL = process.env.MODEL ?? 'node_modules/skein/models/demo/gosling';

/** One engine for the process: this module is loaded again whenever it changes during development. */
const shared = globalThis as { skein?: Promise<Skein> };

async function answer(request: Request): Promise<Response> {
  shared.skein ??= Skein.load({ model: MODEL, maxQueuedRequests: 100 }).catch((error: unknown) => {
    delete shared.skein; // the next request tries again
    throw error;
  });
  return (await shared.skein).fetch(request, { basePath: '/llm' });
}

export { answer as DELETE, answer as GET, answer as POST };
