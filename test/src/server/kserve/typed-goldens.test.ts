import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DataType } from '../../../../models/repository/model-config.js';
import { ask } from '../../../../tools/reference/triton/ask.mjs';
import { MODELS, titleOf, typedCases } from '../../../../tools/reference/triton/typed-cases.mjs';
import { listen } from '../../support/toy-server.js';
import { FakeModel, failing, fakeConfig, identity } from './support/fake-models.js';
import { fakePlatform } from './support/fake-platform.js';

interface Golden {
  request: string;
  status: number;
  jsonLength?: number;
  body: string;
}

const goldens = (
  JSON.parse(readFileSync(new URL('../../../goldens/triton/typed.json', import.meta.url), 'utf8')) as {
    answers: Golden[];
  }
).answers;

const folder = mkdtempSync(join(tmpdir(), 'skein-typed-'));
let close: () => Promise<void>;
const ours: Omit<Golden, 'request'>[] = [];

beforeAll(async () => {
  const models = MODELS.map(({ name, type, dims, batch = 0, labels = [] }) => {
    if (labels.length > 0) writeFileSync(join(folder, 'labels.txt'), `${labels.join('\n')}\n`);
    const labelFile = labels.length > 0 ? 'labels.txt' : '';
    const config = fakeConfig({ name, type: type as DataType, dims, batch, labelFile });
    return new FakeModel(config, name === 'failing' ? failing : identity, { modelDirectory: folder });
  });
  const server = await listen(fakePlatform(models));
  close = server.close;
  for (const asked of typedCases) ours.push(await ask(server.url, asked));
});
afterAll(async () => {
  await close?.();
  rmSync(folder, { recursive: true, force: true });
});

/** Where this server answers otherwise, by the number of the request, and why. */
const DIFFERENCES: Readonly<Record<number, string>> = {
  1: 'a number beyond its type is refused; Triton cuts it off',
  7: 'a number beyond its type is refused; Triton cuts it off',
  12: 'a whole number may have a point',
  13: 'a whole number may have an exponent',
  19: '1 and 0 are taken for true and false',
  21: 'the last digit is that of the shortest text; both are the same number',
  23: 'the last digit is that of the shortest text; both are the same number',
  84: 'a header that is no number is refused as such',
  85: 'a header that is no number is refused as such',
  91: 'NaN is behind all numbers; with Triton it stays where it was',
  99: 'texts have no order, which is said; this Triton dies of it',
  101: 'no elements have no classes; this Triton dies of it',
  105: 'null is nothing that is asked for',
  111: 'null is no parameters',
  121: 'an input that is no object is refused as such',
  122: 'an input that is no object is refused as such',
  123: 'an input that is no object is refused as such',
  130: 'a body in br is read; this one is in no coding',
  132: 'a body that is cut off is refused as such',
};

describe("a Triton's answers to tensors of every type", () => {
  it('are as many as there are requests', () => {
    expect(goldens.map(({ request }) => request)).toEqual(typedCases.map(titleOf));
  });

  it.each(goldens.map((golden, i) => [i, golden.request.slice(0, 160)] as const))('%i %s', (i) => {
    const { request: _, ...golden } = goldens[i]!;
    const our = ours[i]!;
    const isOurs = i in DIFFERENCES;
    const isModels = golden.body.includes('this model always fails');
    if (isOurs) expect(our).not.toEqual(golden);
    else if (golden.status !== 500 || isModels) expect(our).toEqual(golden);
    else {
      // What is wrong with a request is its client's fault, as the protocol says; Triton calls it its own.
      expect(our).toEqual({ status: 400, body: expect.stringMatching(/^\{"error":".*\S.*"\}$/s) });
    }
  });
});
