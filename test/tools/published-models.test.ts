import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CheckpointError } from '../../models/checkpoints/checkpoint.js';
import { openCheckpoint } from '../../models/checkpoints/open-checkpoint.js';
import { withSection } from '../../tools/document-section.js';
import {
  familiesWithoutFacts,
  MODEL_DOCUMENTS,
  type OpenedModel,
} from '../../tools/published-models/model-tables.js';
import {
  openHeaders,
  PUBLISHED_MODELS,
  type PublishedModel,
  tensorsOf,
  writeHeaders,
} from '../../tools/published-models/published-models.js';
import { temporaryFolder } from '../support/fresh-folders.js';

const folder = temporaryFolder('skein-published');

const opened = new Map<PublishedModel, OpenedModel>();
const openedOf = (model: PublishedModel): OpenedModel => {
  const known = opened.get(model) ?? { model, opened: openHeaders(join(folder, model.id), model) };
  opened.set(model, known);
  return known;
};
const named = (id: string) => PUBLISHED_MODELS.find((model) => model.id === id)!;
const sizeOf = (shape: readonly number[]) => shape.reduce((product, size) => product * size, 1);

/** Name of the tensor that a file has in place of the slices that the network reads. */
function inFile(name: string, isStacked: boolean): string {
  const whole = name
    .replace(/(_proj(?:_qkvz|_ba)?|mamba\.norm)\.\d+(?:\.\w+)?\.weight$/, '$1.weight')
    .replace(/shared_mlp\.(?:gate|up)\.weight$/, 'shared_mlp.input_linear.weight');
  if (!isStacked) return whole;
  return whole
    .replace(/experts\.\d+\.(?:gate_up|gate|up)_proj/, 'experts.gate_up')
    .replace(/experts\.\d+\.down/, 'experts.down');
}

describe.each(PUBLISHED_MODELS)('$id', (model) => {
  it(model.refused === undefined ? 'loads by its headers' : 'is refused by a sentence that says why', () => {
    const { opened: result } = openedOf(model);
    if (model.refused !== undefined) {
      expect(result).toMatch(/^\S+config\.json: .+\.$/);
      expect(result).toMatch(new RegExp(model.refused));
      return;
    }
    if (typeof result === 'string') expect.fail(result);
    // What the hub counts says that the values here are those of the files.
    const tensors = tensorsOf(model);
    const countOf = (name: string, shape: number[]) => sizeOf(shape) * (name.endsWith('_blocks') ? 2 : 1);
    expect(tensors.reduce((sum, [name, shape]) => sum + countOf(name, shape), 0)).toBe(model.parameters);
    const aside = result.leftAside.reduce((sum, { tensors }) => sum + tensors, 0);
    // Numbers of an activation are read with the configuration, scales and zero points with their matrix.
    const others = tensors.filter(
      ([name]) => !/\.mlp\.act_fn\.|[._](qzeros|scales|weight_scale_inv)$/.test(name),
    );
    const isStacked = others.some(([name]) =>
      /experts\.gate_up_proj(_blocks)?$|sparse_moe\.input_linear\.weight$/.test(name),
    );
    const read = new Set([...result.tensors.keys()].map((name) => inFile(name, isStacked)));
    expect(read.size + aside).toBe(others.length);
    expect(result.leftAside.length > 0).toBe('vision_config' in model.config);
  });
});

describe('the headers of a published model', () => {
  const model = named('HuggingFaceTB/SmolLM2-135M-Instruct');

  it.each<[string, Record<string, unknown>, RegExp]>([
    ['another width', { hidden_size: 1152 }, /should have the shape \[49152, 1152\], found \[49152, 576\]/],
    ['a layer more', { num_hidden_layers: 31 }, /tensor model\.layers\.30\..* is missing/],
    [
      'biases',
      { attention_bias: true },
      /tensor model\.layers\.0\.self_attn\.q_proj\.bias and 119 more .* is missing/,
    ],
    ['an output layer of its own', { tie_word_embeddings: false }, /tensor lm_head\.weight .* is missing/],
  ])('are compared with its config: %s is refused', (what, changes, message) => {
    const changed: PublishedModel = { ...model, config: { ...model.config, ...changes } };
    const path = writeHeaders(join(folder, what), changed);
    expect(() => openCheckpoint(path)).toThrow(CheckpointError);
    expect(() => openCheckpoint(path)).toThrow(message);
  });
});

describe('the tables of models in documents', () => {
  it.each(Object.entries(MODEL_DOCUMENTS))(
    'of %s say what was found here (npx tsx tools/write-model-tables.ts writes them)',
    (document, tablesOf) => {
      const text = readFileSync(new URL(`../../${document}`, import.meta.url), 'utf8');
      const written = Object.entries(tablesOf(PUBLISHED_MODELS.map(openedOf))).reduce(
        (result, [name, table]) => withSection(result, name, table),
        text,
      );
      expect(text).toBe(written);
    },
  );

  it('have a row for each architecture that writes texts', () => {
    expect(familiesWithoutFacts()).toEqual([]);
    expect(PUBLISHED_MODELS.length).toBeGreaterThanOrEqual(50);
  });
});
