import { freePort } from '../support/free-port.js';
import { Client } from './client/client.js';
import { type Json, stable } from './client/fold.js';
import { ProgramMember } from './fleet/program-member.js';
import { type EngineOptions, singleServer } from './fleet/skein-program.js';
import { inParallel } from './in-parallel.js';
import type { DrawnRequest } from './requests/draw-requests.js';

/** What a single server answers to a request. */
export interface Expected {
  answer: Json;
  numTokens: number;
}

/** Asks a single `skein serve` that nothing disturbs. @throws where it refuses a request */
export async function expectedAnswers(
  requests: readonly DrawnRequest[],
  engine: EngineOptions,
  concurrency: number,
): Promise<Expected[]> {
  const port = await freePort();
  const server = new ProgramMember({
    name: 'the single server',
    role: 'worker',
    start: async () => singleServer(port, engine),
  });
  const asked = { addresses: () => [`http://127.0.0.1:${port}`], excuse: () => null };
  const options = { turn: 0, expected: null, onEvents: () => {} };
  try {
    await server.start();
    return await inParallel(requests, concurrency, async ({ index, kind, script }) => {
      const found = await script.run(new Client(asked, options).ask).catch((error: unknown) => {
        throw new Error(`The single server does not answer request ${index} (${kind}).`, { cause: error });
      });
      return { answer: stable(found), numTokens: Math.max(1, numTokensOf(found)) };
    });
  } finally {
    await server.end('SIGKILL');
  }
}

/** Names of the tokens of an answer, of each API. */
const TOKENS = ['completion_tokens', 'output_tokens'];

/** Tokens that an answer, or all answers in it together, says that it has. */
function numTokensOf(value: Json): number {
  if (typeof value !== 'object' || value === null) return 0;
  return Object.entries(value).reduce(
    (sum, [name, inner]) =>
      sum + (TOKENS.includes(name) && typeof inner === 'number' ? inner : numTokensOf(inner)),
    0,
  );
}
