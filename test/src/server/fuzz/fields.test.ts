import { describe, expect, it } from 'vitest';
import { PoolWeights } from '../../../../cluster/routing/pool-weights.js';
import { draws } from '../../../support/scale.js';
import { say, toyServer } from '../../support/toy-server.js';
import { fuzzedRoutes, refusalOf } from './fuzzed-routes.js';
import { HOSTILE_BODIES, HOSTILE_VALUES } from './hostile-values.js';

const routes = await fuzzedRoutes();
const model = { maxInputLen: 60_000, maxSeqLen: 70_000 };
/** One for all routes: to make one takes longer than most requests. */
const toy = toyServer(() => say('ok'), { model, unknownFields: 'refuse', poolWeights: new PoolWeights() });
const warning = toyServer(() => say('ok'), { model, unknownFields: 'warn' });

/** Fields whose value is wrong only together with another, which is the one that is named. */
const NAMED_BY_ANOTHER: Readonly<Record<string, readonly string[]>> = {
  n: ['best_of', 'max_tokens'],
  stream: ['stream_options'],
  use_beam_search: ['best_of', 'n'],
  add_generation_prompt: ['continue_final_message'],
  ignore_eos: ['response_format', 'structured_outputs'],
  tool_choice: ['tools'],
};

const NO_GENERATOR = { status: 400, param: 'model' };
const NO_CONVERSATION = { status: 404, param: null };
const NO_ADAPTERS = { status: 403, param: null };
const NO_FOLDER = { status: 404, param: null };
/** Routes for models of other kinds, those that need a file or a conversation, and those of adapters: the toy refuses what its validator has taken. */
const REFUSED: Readonly<Record<string, { status: number; param: string | null }>> = {
  '/v1/embeddings': NO_GENERATOR,
  '/v1/rerank': NO_GENERATOR,
  '/v2/embed': NO_GENERATOR,
  '/v2/rerank': NO_GENERATOR,
  '/infill': NO_GENERATOR,
  '/v1/score': NO_GENERATOR,
  '/pooling': NO_GENERATOR,
  '/classify': NO_GENERATOR,
  '/predict': NO_GENERATOR,
  '/embed_sparse': NO_GENERATOR,
  '/embed_all': NO_GENERATOR,
  '/v1/batches': { status: 404, param: 'input_file_id' },
  '/v1/conversations/x': NO_CONVERSATION,
  '/v1/conversations/x/items': NO_CONVERSATION,
  '/v1/load_lora_adapter': NO_ADAPTERS,
  '/v1/unload_lora_adapter': NO_ADAPTERS,
  '/catalogue/downloads': NO_FOLDER,
};

/**
 * A field takes one of a number of values, the next field the next ones: few values differ for one field
 * alone. A field that an earlier route had takes still fewer. `npm run test:drawn` tries all of them.
 */
const SAMPLE = draws(1) > 1 ? { own: 1, shared: 1 } : { own: 4, shared: 32 };

describe.each(routes.map((route, number) => ({ ...route, number })))('$name', (route) => {
  const { path, fields, shared, valid, number } = route;
  const refused = REFUSED[path] ?? null;

  async function expectServed(): Promise<void> {
    const refusal = await refusalOf(await toy.post(path, valid), 'the example');
    if (refused === null) expect(refusal).toBe(null);
    else expect(refusal).toMatchObject(refused);
  }

  it('takes its own example', async () => {
    await expectServed();
  });

  it('takes any value in any field, or refuses it by the name of the field', async () => {
    for (const [at, field] of fields.entries()) {
      const sample = shared.has(field) ? SAMPLE.shared : SAMPLE.own;
      const values = HOSTILE_VALUES.filter((_, index) => index % sample === at % sample);
      for (const value of values) {
        const { [field]: _, ...others } = valid;
        const rest = JSON.stringify(others).slice(1);
        const body = `{${JSON.stringify(field)}:${value}${rest === '}' ? '' : ','}${rest}`;
        const what = `${field}: ${value.slice(0, 80)}`;
        const refusal = await refusalOf(await toy.post(path, body), what);
        if (refusal === null) continue;
        // A value that nests too deep is refused unread, so that its field is not named.
        if (/nested/.test(refusal.message) && refusal.param === null) continue;
        const named = refusal.param?.split(/[.[]/)[0] ?? null;
        expect(
          [field, ...(refused === null ? [] : [refused.param]), ...(NAMED_BY_ANOTHER[field] ?? [])],
          `${what}: ${refusal.message}`,
        ).toContain(named);
      }
    }
    expect((Object.prototype as { polluted?: unknown }).polluted).toBe(undefined);
    // The next request is served, whatever came before.
    await expectServed();
  });

  it('refuses a field that it does not have by its name', async () => {
    for (const field of [
      'nonsense',
      '__proto__',
      'constructor',
      'prototype',
      'hasOwnProperty',
      '',
      'a.b',
      '\ud800',
    ]) {
      const body = `{${JSON.stringify(field)}:{"polluted":1},${JSON.stringify(valid).slice(1)}`;
      const refusal = await refusalOf(await toy.post(path, body), field);
      // JSON's own __proto__ is a field like any other, and no prototype.
      expect(refusal, field).toMatchObject({ status: 400, param: field });
      expect((await warning.post(path, body)).status, field).toBeLessThan(500);
    }
    expect(({} as { polluted?: unknown }).polluted).toBe(undefined);
  });

  it('takes the last of two fields of one name', async () => {
    const body = `{"nonsense":1,"model":5,${JSON.stringify({ ...valid, model: 'toy' }).slice(1)}`;
    expect(await refusalOf(await toy.post(path, body), 'twice')).toMatchObject({ param: 'nonsense' });
    const twice = `{"model":5,${JSON.stringify({ ...valid, model: 'toy' }).slice(1)}`;
    if (fields.includes('model') && refused === null)
      expect(await refusalOf(await toy.post(path, twice), 'twice')).toBe(null);
  });

  it('refuses what is no JSON object', async () => {
    // All routes read their bodies by the same code: the first takes each of them, the others some.
    const bodies = Object.entries(HOSTILE_BODIES).filter(
      (_, index) => number === 0 || draws(1) > 1 || index % 6 === number % 6,
    );
    for (const [what, body] of bodies) {
      // A conversation may begin with nothing said of it.
      if (/nothing$/.test(what) && path === '/v1/conversations') continue;
      const response = await toy.app.request(path, { method: 'POST', body: body as string });
      const refusal = await refusalOf(response, what);
      expect(refusal?.status, what).toBe(400);
    }
  });

  it('refuses a body that is longer than the limit, with and without a length that says so', async () => {
    const bytes = new Uint8Array(17 * 2 ** 20).fill(0x20);
    const whole = await toy.app.request(path, { method: 'POST', body: bytes });
    expect(await refusalOf(whole, 'a long body')).toMatchObject({ status: 413 });
    const stream = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(2 ** 20).fill(0x20)),
    });
    const chunked = await toy.app.request(path, {
      method: 'POST',
      body: stream,
      duplex: 'half',
    } as RequestInit);
    expect(await refusalOf(chunked, 'a body without an end')).toMatchObject({ status: 413 });
  });
});
