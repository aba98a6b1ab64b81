import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Neighbour } from './asked.js';
import { ms } from './bounds.js';
import { DearRequests } from './dear-requests.js';
import { writeLargeAdapter, writeLateModel } from './first-models.js';
import {
  type Cost,
  costOf,
  type DearRequest,
  leastCost,
  leastOf,
  type MeasuredCost,
  NO_BASELINE,
  tokenMsOf,
} from './measure.js';
import { MeteredServer } from './metered-server.js';
import type { MeasuredModel } from './session.js';

/** Texts of the vocabularies of models on demand: as SmolLM2, and as Gemma. */
const VOCABULARIES = [49_152, 262_144];
/** Adapters that are first used in one moment. */
const TOGETHER = 9;
/** How often a first time can be repeated: each time with models and adapters of its own. */
const TRIES = 3;
const WARMING_UP = 3;

/** Measures requests of which each is expensive only once, in a server of their own whose cache is empty. */
export async function measureFirstTimes(
  { path, sizes }: MeasuredModel,
  environment: NodeJS.ProcessEnv,
): Promise<MeasuredCost[]> {
  const folder = mkdtempSync(join(tmpdir(), 'skein-first-times-'));
  try {
    const { flags, requests } = filled(folder, path);
    const cache = ['--cache-dir', join(folder, 'cache'), '--kv-cache-tokens', String(8 * sizes.maxSeqLen)];
    const more = ['--threads', '1', ...cache];
    const server = await MeteredServer.start(['--model', `chat=${path}`, ...flags, ...more], environment);
    const neighbour = new Neighbour(server.url, 'chat', sizes.maxSeqLen);
    try {
      const plain = new DearRequests(sizes, () => 'chat', new Map());
      const crowds: Cost[] = [];
      for (let i = 0; i < WARMING_UP; i++) crowds.push(await costOf(server, plain.crowd(i), NO_BASELINE));
      const fullMs = leastOf(crowds).iterationMs;
      const baseline = { tokenMs: await tokenMsOf(server), fullMs, longFullMs: fullMs };
      const measured: MeasuredCost[] = [];
      for (const tries of requests) measured.push(await leastCost(server, tries, baseline));
      return measured;
    } finally {
      await neighbour.stop();
      await server.stop();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Fills a folder. @returns the flags that name what is in it, and the requests that need it, each with its repetitions */
function filled(folder: string, model: string): { flags: string[]; requests: DearRequest[][] } {
  const tries = Array.from({ length: TRIES }, (_, index) => index);
  const models = join(folder, 'models');
  for (const numTexts of VOCABULARIES) {
    for (const number of tries)
      writeLateModel(model, join(models, `late-${numTexts}-${number}`), number, numTexts);
  }
  const adapters = Array.from({ length: TRIES * TOGETHER }, (_, number) => {
    writeLargeAdapter(model, join(folder, `adapter-${number}`), number);
    return `adapter-${number}`;
  });
  const loras = adapters.flatMap((name) => ['--lora', `${name}=${join(folder, name)}`]);
  return {
    flags: ['--models-dir', models, ...loras],
    requests: [
      [{ name: 'GET /openapi.json', path: '/openapi.json', body: null, isLong: false }],
      ...VOCABULARIES.map((numTexts) => {
        const name = `a model on demand with ${numTexts.toLocaleString('en')} texts`;
        return tries.map((number) => naming(name, [`late-${numTexts}-${number}`]));
      }),
      tries.map((number) =>
        naming(`${TOGETHER} adapters`, adapters.slice(number * TOGETHER, (number + 1) * TOGETHER)),
      ),
    ],
  };
}

/** A request for each of these models, all in one moment. Their memory has bounds of its own (--model-memory-bytes). */
function naming(name: string, models: readonly string[]): DearRequest {
  const [body, ...beside] = models.map((model) =>
    Buffer.from(JSON.stringify({ model, prompt: 'a', max_tokens: 2, ignore_eos: true })),
  );
  return { name, path: '/v1/completions', body: body!, beside, isLong: false, hasOwnMemory: true };
}

/** What is done for the first time, as Markdown. */
export function firstTable(costs: readonly Cost[]): string {
  const rows = costs.map(
    ({ name, holdMs, iterationMs }) => `| ${name} | ${ms(holdMs)} | ${ms(iterationMs)} |`,
  );
  return [
    "| for the first time | main thread held | engine's thread between two tokens of a neighbour |",
    '|---|---|---|',
    ...rows,
  ].join('\n');
}
