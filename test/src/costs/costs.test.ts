import { afterAll, beforeAll, expect, it } from 'vitest';
import { dearBodies } from '../../../tools/request-costs/dear-bodies.js';
import { DEAR_ROUTES } from '../../../tools/request-costs/dear-fields.js';
import { DEAR_ITEMS, PASSING_ITEMS } from '../../../tools/request-costs/dear-items.js';
import { type DearStore, dearStores } from '../../../tools/request-costs/dear-stores.js';
import type { Cost, DearRequest } from '../../../tools/request-costs/measure.js';
import { CostSession, DEMO_MODEL } from '../../../tools/request-costs/session.js';
import { costTable } from '../../../tools/request-costs/table.js';
import { Random } from '../../../tools/soak/random.js';
import { draws } from '../../support/scale.js';
import { cleanEnvironment, testCacheDir } from '../support/skein-process.js';

/** The same every time, so that what passes here passes everywhere; others: SKEIN_COSTS_SEED=7 SKEIN_COSTS_RUNS=500. */
const SEED = Number(process.env.SKEIN_COSTS_SEED ?? 1);
/** Number of random requests with several fields. */
const RUNS = Number(process.env.SKEIN_COSTS_RUNS ?? draws(6));

let session: CostSession;
beforeAll(async () => {
  session = await CostSession.open(DEMO_MODEL, testCacheDir, cleanEnvironment({}));
});
afterAll(() => session?.close());

it('knows what is dear in every field of every route that takes a body', () => {
  expect(Object.keys(DEAR_ROUTES).sort()).toEqual([...session.fields.keys()].sort());
  const unknown = [...session.fields].flatMap(([path, fields]) =>
    fields
      .filter((field) => !Object.hasOwn(DEAR_ROUTES[path]!.fields, field))
      .map((field) => `${path} ${field}`),
  );
  expect(unknown, 'fields that tools/request-costs/dear-fields.ts has no value of').toEqual([]);
});

it(`keeps within its bounds whatever a single request asks for (seed ${SEED})`, async () => {
  const random = new Random(SEED);
  const requests = [
    ...eachField(random),
    ...Array.from({ length: RUNS }, () => session.requests.random(random)),
  ];
  const costs: Cost[] = [];
  const tooDear: string[] = [];
  for (const request of requests) {
    const { cost, exceeded } = await session.measure(request);
    costs.push(cost);
    tooDear.push(
      ...exceeded.map((what) => `${cost.name} (${cost.status}, ${cost.bodyBytes} bytes): ${what}`),
    );
  }
  console.log(costTable(costs));
  expect(tooDear).toEqual([]);
  expect(costs.filter(({ status }) => status === 200).length).toBeGreaterThan(costs.length / 2);
});

it('knows what is expensive in every type of item', () => {
  expect([...Object.keys(DEAR_ITEMS), ...PASSING_ITEMS].sort()).toEqual([...session.itemTypes].sort());
});

it(`keeps within its bounds whatever a request takes from a full store (seed ${SEED})`, async () => {
  const random = new Random(SEED);
  const tooDear: string[] = [];
  for (const [i, store] of storesOfEachType(random).entries()) {
    // The first one leaves the store full, and each conversation that is added to it drives out others.
    const requests = await session.fill(store, i === 0);
    for (let i = 0; i < draws(1); i++) {
      const { cost, exceeded } = await session.measure(random.pick(requests));
      tooDear.push(...exceeded.map((what) => `${cost.name} (${cost.status} ${cost.answer}): ${what}`));
      expect([200, 400, 413], `${cost.name}: ${cost.answer}`).toContain(cost.status);
    }
  }
  expect(tooDear).toEqual([]);
});

it('bounds what a compressed body becomes', async () => {
  const tooDear: string[] = [];
  const statuses: number[] = [];
  for (const request of dearBodies('/v1/chat/completions')) {
    const { cost, exceeded } = await session.measure(request);
    tooDear.push(...exceeded.map((what) => `${cost.name} (${cost.status} ${cost.answer}): ${what}`));
    statuses.push(cost.status);
  }
  expect(tooDear).toEqual([]);
  // An object without fields, one that is too long, and no text at all.
  expect(statuses).toEqual([400, 413, 400, 413, 400, 413, 400]);
});

it('leaves out fields that nobody knows at little cost, and refuses more than a body may have', async () => {
  const found: [number | 'any', string[]][] = [];
  for (const path of ['/v1/chat/completions', '/v1/embeddings']) {
    for (const [count, length] of [
      [28_000, 1],
      [28_000, 500],
      [100_000, 1],
    ] as const) {
      const { cost, exceeded } = await session.measure(session.requests.unknown(path, count, length));
      found.push([length > 1 ? 'any' : cost.status, exceeded]);
    }
  }
  const each = [200, 'any', 400].map((status) => [status, []]);
  expect(found).toEqual([...each, ...each]);
});

/** One store of each type of item, and those of responses. The others: npm run costs -- stored. */
function storesOfEachType(random: Random): DearStore[] {
  const stores = dearStores();
  const types = new Set(stores.map(({ type }) => type));
  return [...types].map((type) => random.pick(stores.filter((store) => store.type === type)));
}

/**
 * Each field once, on one of its routes, with one of its most expensive values: all of them take minutes (npm
 * run costs).
 */
function eachField(random: Random): DearRequest[] {
  const routes = new Map<string, string[]>();
  for (const [path, fields] of session.fields) {
    for (const field of fields) routes.set(field, [...(routes.get(field) ?? []), path]);
  }
  return [...routes].map(([field, paths]) => {
    const path = random.pick(paths);
    return session.requests.single(path, field, random.integer(0, session.requests.count(path, field) - 1));
  });
}
