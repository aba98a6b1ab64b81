import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { TensorLocation } from '../../../../models/checkpoints/checkpoint.js';
import {
  changedHeader,
  fileOf,
  headerChange,
  odd,
  readEntries,
  readsOrRefuses,
} from '../../../support/changed-safetensors.js';
import { temporaryFolder } from '../../../support/fresh-folders.js';
import { DOWN, GATE_UP, writeGptOss, writeMxfp4 } from '../../../support/gptoss-model.js';
import { writeQuantizedModel } from '../../../support/quantized-models.js';
import { draws } from '../../../support/scale.js';

const root = temporaryFolder('skein-quantized-fuzz');
const target = join(root, 'target.bin');
/** Of each form; SKEIN_TEST_DRAWS=5 makes them 2,000. */
const MUTATIONS = 400;

const firstQuantised = (tensors: readonly TensorLocation[]) =>
  tensors.filter(({ quantized }) => quantized !== undefined).slice(0, 1);

describe.each([
  'fp8-blocks',
  'fp8-experts',
  'ct-int4-zeros',
  'ct-nvfp4',
  'gptq-order',
  'gptq-8',
  'awq',
  'mxfp4',
])('a changed model of %s', (name) => {
  const folder = writeQuantizedModel(join(root, name), name);
  const file = join(folder, 'model.safetensors');
  const { header, data } = readEntries(file);
  const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));

  it('is read or refused in a sentence', () => {
    const keys = Object.keys(config.quantization_config);
    const mutation = fc.record({
      header: fc.array(headerChange, { maxLength: 2 }),
      config: fc.dictionary(fc.constantFrom(...keys), odd, { maxKeys: 1 }),
      bytes: fc.array(fc.tuple(fc.nat(data.length - 1), fc.nat(255)), { maxLength: 3 }),
    });
    const reached = { read: 0, refused: 0 };
    fc.assert(
      fc.property(mutation, (change) => {
        const copy = Buffer.from(data);
        for (const [at, value] of change.bytes) copy[at] = value;
        writeFileSync(file, fileOf(changedHeader(header, change.header), copy));
        const quantization = { ...config.quantization_config, ...change.config };
        writeFileSync(
          join(folder, 'config.json'),
          JSON.stringify({ ...config, quantization_config: quantization }),
        );
        reached[readsOrRefuses(folder, target, firstQuantised) ? 'read' : 'refused']++;
      }),
      { numRuns: draws(MUTATIONS) },
    );
    expect(reached.read).toBeGreaterThan(0);
    expect(reached.refused).toBeGreaterThan(0);
  });
});

// Their gate and up take turns, and plain matrices lie turned.
describe.each([
  ['in MXFP4', (folder: string) => writeMxfp4(folder)],
  ['in plain numbers', (folder: string) => writeGptOss(folder, [GATE_UP.plain, DOWN.plain])],
])('the experts of a changed gpt-oss %s', (name, write) => {
  const folder = write(join(root, name));
  const file = join(folder, 'model.safetensors');
  const { header, data } = readEntries(file);
  const experts = Object.keys(header).filter((one) => one.includes('.mlp.experts.'));
  const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')) as object;

  it('are read or refused in a sentence', () => {
    const ofExperts = headerChange.map(({ tensor, ...rest }) => ({
      ...rest,
      tensor: Object.keys(header).indexOf(experts[tensor % experts.length]!),
    }));
    const dimensions = ['num_local_experts', 'hidden_size', 'intermediate_size', 'num_experts_per_tok'];
    const begins = experts.map((one) => header[one]!.data_offsets[0]);
    const mutation = fc.record({
      header: fc.array(ofExperts, { maxLength: 2 }),
      config: fc.dictionary(fc.constantFrom(...dimensions, 'quantization_config'), odd, { maxKeys: 1 }),
      bytes: fc.array(fc.tuple(fc.constantFrom(...begins), fc.nat(500), fc.nat(255)), { maxLength: 3 }),
    });
    const reached = { read: 0, refused: 0 };
    fc.assert(
      fc.property(mutation, (change) => {
        const copy = Buffer.from(data);
        for (const [begin, at, value] of change.bytes) copy[Math.min(begin + at, copy.length - 1)] = value;
        writeFileSync(file, fileOf(changedHeader(header, change.header), copy));
        writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, ...change.config }));
        const isRead = readsOrRefuses(folder, target, (tensors) =>
          tensors.filter((one) => one.name.includes('.experts.2.')),
        );
        reached[isRead ? 'read' : 'refused']++;
      }),
      { numRuns: draws(MUTATIONS) },
    );
    expect(reached.read).toBeGreaterThan(0);
    expect(reached.refused).toBeGreaterThan(0);
  });
});
