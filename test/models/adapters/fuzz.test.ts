import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, it } from 'vitest';
import { readPeftCheckpoint } from '../../../models/adapters/peft-checkpoint.js';
import { safetensorsBytes } from '../../../tools/support/safetensors-writer.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { readsChangedBytes, refusesOrReads } from '../../support/hostile-adapter.js';
import { draws } from '../../support/scale.js';
import {
  floats,
  TINY_ADAPTER_CONFIG,
  TINY_BASE,
  tinyAdapterTensors,
  writeTinyAdapter,
} from '../../support/tiny-adapter.js';

const folder = writeTinyAdapter(temporaryFolder('skein-adapter-fuzz'));
const weights = join(folder, 'adapter_model.safetensors');
const config = join(folder, 'adapter_config.json');

const read = () => readPeftCheckpoint(folder, TINY_BASE, { maxRank: 16 });

describe('hostile adapters', () => {
  it('changed bytes are read or refused', () => {
    readsChangedBytes(weights, readFileSync(weights), read);
  });

  it('any names and shapes are read or refused', () => {
    const part = fc.constantFrom(
      'base_model',
      'model',
      'layers',
      '0',
      '1',
      '99',
      'self_attn',
      'q_proj',
      'lora_A',
    );
    const end = fc.constantFrom('.lora_A.weight', '.lora_B.default.weight', '.lora_B.bias', '');
    const name = fc
      .tuple(fc.array(part, { maxLength: 8 }), fc.string({ maxLength: 3 }), end)
      .map(([parts, free, last]) => parts.join('.') + free + last);
    const known = fc.constantFrom(...tinyAdapterTensors().map((tensor) => tensor.name));
    const tensor = fc.tuple(fc.oneof(name, known), fc.array(fc.nat(10), { maxLength: 3 }));
    fc.assert(
      fc.property(fc.uniqueArray(tensor, { maxLength: 5, selector: ([one]) => one }), (tensors) => {
        writeFileSync(weights, safetensorsBytes(tensors.map(([one, shape]) => floats(one, shape))));
        refusesOrReads(read);
      }),
      { numRuns: draws(120) },
    );
    writeFileSync(weights, safetensorsBytes(tinyAdapterTensors()));
  });

  it('any settings are read or refused', () => {
    const pattern = fc.string({ unit: fc.constantFrom(...'q_proj.*+()[]|^$\\d{}2'), maxLength: 8 });
    const value = fc.oneof(
      fc.jsonValue({ maxDepth: 2 }),
      pattern,
      fc.array(pattern, { maxLength: 3 }),
      fc.dictionary(pattern, fc.oneof(fc.nat(4), fc.double()), { maxKeys: 3 }),
    );
    const keys = [
      ...Object.keys(TINY_ADAPTER_CONFIG),
      'exclude_modules',
      'layers_pattern',
      'target_parameters',
    ];
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...keys), value, { maxKeys: 2 }), (change) => {
        writeFileSync(config, JSON.stringify({ ...TINY_ADAPTER_CONFIG, ...change }));
        refusesOrReads(read);
      }),
      { numRuns: draws(200) },
    );
  });
});
