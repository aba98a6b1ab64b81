import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Random } from '../soak/random.js';
import { Neighbour } from './asked.js';
import { describedFields } from './described-fields.js';
import { DEAR_ROUTES } from './dear-fields.js';
import { describeRoutes, randomRequest, singleRequests } from './dear-requests.js';
import { baselineOf, type Cost, costOf } from './measure.js';
import { MeteredServer } from './metered-server.js';

const only = process.argv[2] ?? '';
const numRandom = Number(process.argv[3] ?? 0);
const model = process.env.SKEIN_TEST_MODEL ?? 'models/demo/gosling';
const extra = (process.env.SKEIN_COSTS_ARGS ?? '').split(' ').filter(Boolean);
const cache = process.env.SKEIN_COSTS_CACHE ?? mkdtempSync(join(tmpdir(), 'skein-costs-'));
const server = await MeteredServer.start(
  ['--model', `chat=${model}`, '--model', 'vectors=test/fixtures/tiny-bert-mean', '--model', 'scores=test/fixtures/tiny-bert-score',
   '--threads', '1', '--cache-dir', cache, '--max-beam-width', '4', '--max-tokens', '65536', ...extra], process.env);
const real = process.env.SKEIN_TEST_MODEL !== undefined;
const sizes = real ? { vocabSize: 49152, maxSeqLen: 8192 } : { vocabSize: 2048, maxSeqLen: 1024 };
describeRoutes(await describedFields(server.url));
const modelOf = (path: string) => path === '/v1/embeddings' ? 'vectors' : path === '/v1/rerank' || path === '/v1/score' ? 'scores' : 'chat';
const neighbour = new Neighbour(server.url, 'chat');
await new Promise((r) => setTimeout(r, 1500));
const baseline = await baselineOf(server);
await server.noted(true);
await new Promise((r) => setTimeout(r, 500));
console.log('baseline', baseline, await server.noted());
const paths = Object.keys(DEAR_ROUTES);
const costs: Cost[] = [];
const requests = numRandom > 0 ? [] : singleRequests(sizes, modelOf, paths).filter(({ name }) => new RegExp(only).test(name));
const random = new Random(1);
for (let i = 0; i < numRandom; i++) requests.push(randomRequest(random, sizes, modelOf, paths));
for (const request of requests) {
  const c = await costOf(server, request, baseline);
  costs.push(c);
  const excess = c.memoryBytes - 4 * c.bodyBytes;
  const bad = [c.holdMs > 50 ? 'HOLD' : '', c.iterationMs > 50 ? 'ITER' : '', excess > 32 * 2 ** 20 ? 'MEM' : ''].join('');
  console.log(`${c.status} adm ${c.admissionMs.toFixed(0).padStart(5)} hold ${c.holdMs.toFixed(0).padStart(5)} iter ${c.iterationMs.toFixed(0).padStart(5)} mem ${(c.memoryBytes / 2 ** 20).toFixed(0).padStart(5)} MB over ${(excess / 2 ** 20).toFixed(0).padStart(5)} body ${(c.bodyBytes / 2 ** 20).toFixed(2)} ${bad} ${c.name}`);
}
await neighbour.stop();
await server.stop();
