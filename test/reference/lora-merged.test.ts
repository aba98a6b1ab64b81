import { closeSync, cpSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { Engine } from '../../engine/building/engine.js';
import { readFloats } from '../../models/adapters/adapter-tensors.js';
import type { AdapterWeights } from '../../models/adapters/adapter-weights.js';
import { baseModules, isInLayer } from '../../models/adapters/base-modules.js';
import { MODULE_IDS, type ModuleId } from '../../models/adapters/module-ids.js';
import { readSafetensors } from '../../models/checkpoints/safetensors.js';
import type { ModelConfig } from '../../models/model-config.js';
import { Random } from '../../tools/support/random.js';
import { safetensorsBytes } from '../../tools/support/safetensors-writer.js';
import { SequenceDriver } from '../../tools/support/sequence-driver.js';
import {
  openExecutor,
  TestEngines,
  type TestExecutorOptions,
  tinyModelPath,
} from '../../tools/support/test-engine.js';
import { madeModelPath } from '../support/made-models.js';
import { instructionSets } from '../support/native-options.js';
import { randomAdapter } from '../support/random-adapter.js';
import { greatestDifference } from './compare-logits.js';

/**
 * Greatest difference of a logit between W x + B (A x) and (W + B A) x, both in float32. The logits' standard deviation is about 3; up to 5e-5
 * was found, and the adapter changes each position by more than CHANGE_MIN.
 */
const DIFFERENCE_MAX = 2e-4;
const CHANGE_MIN = 1;
/** The same of models whose logits are smaller. */
const SMALL_CHANGE_MIN = 0.1;
const MAX_RANK = 8;
const PROMPT_LENGTH = 60;

const { attn_q, attn_k, attn_v, mlp_h_to_4h, mlp_gate, attn_qkv, mlp_gate_up } = MODULE_IDS;
/** Modules whose rows others are, in this order. */
const STACKS: readonly (readonly [ModuleId, readonly ModuleId[]])[] = [
  [attn_qkv, [attn_q, attn_k, attn_v]],
  [mlp_gate_up, [mlp_h_to_4h, mlp_gate]],
];

const folder = mkdtempSync(join(tmpdir(), 'skein-merged-'));
const engines = new TestEngines();
afterAll(() => {
  engines.remove();
  rmSync(folder, { recursive: true, force: true });
});

/** Models whose layers keep states in place of attention, but for some; their logits are smaller. */
const STATEFUL = ['qwen3.5', 'qwen3.5-moe', 'lfm2'];
const pathOf = (variant: string) =>
  STATEFUL.includes(variant) ? madeModelPath(join(folder, 'made'), variant) : tinyModelPath(variant);

/** The tensors of a safetensors file, in float32. */
function readTensors(file: string) {
  const fd = openSync(file, 'r');
  try {
    return readSafetensors(file).map((tensor) => ({ ...tensor, values: readFloats(fd, tensor, 1) }));
  } finally {
    closeSync(fd);
  }
}

/** Element of a weight, [row, column] as in W x, in the values of a tensor. */
interface Matrix {
  values: Float32Array;
  at(row: number, column: number): number;
}

/**
 * The rows of each module of a layer, wherever the checkpoint has them: those of a stack in the tensors of its parts, or those of a part in
 * the stack's.
 */
function rowsByModule(
  config: ModelConfig,
  layer: number,
  matrixOf: (name: string, rows: number, columns: number) => Matrix,
): Map<ModuleId, [Matrix, number][]> {
  const { names, shapes } = baseModules(config);
  const found = new Map<ModuleId, [Matrix, number][]>();
  for (const [name, module] of names) {
    if (!isInLayer(config, layer, module)) continue;
    const shape = shapes.get(module)!;
    const matrix = matrixOf(name, shape.out, shape.in);
    found.set(
      module,
      Array.from({ length: shape.out }, (_, row) => [matrix, row]),
    );
  }
  for (const [whole, parts] of STACKS) {
    if (!shapes.has(whole) || !isInLayer(config, layer, whole)) continue;
    const rows = found.get(whole) ?? parts.flatMap((part) => found.get(part)!);
    found.set(whole, rows);
    let first = 0;
    for (const part of parts) {
      found.set(part, rows.slice(first, first + shapes.get(part)!.out));
      first += shapes.get(part)!.out;
    }
  }
  return found;
}

/** A copy of a tiny model in float32 in which each weight is W + B A, its terms summed in double precision. */
function merge(variant: string, config: ModelConfig, { moduleLayers }: AdapterWeights): string {
  const merged = join(folder, variant);
  cpSync(pathOf(variant), merged, { recursive: true });
  const file = join(merged, 'model.safetensors');
  const tensors = readTensors(file);
  for (let layer = 0; layer < config.numLayers; layer++) {
    const rowsOf = rowsByModule(config, layer, (name, rows, columns) => {
      const { values } = tensors.find((tensor) => tensor.name.endsWith(`.${layer}.${name}.weight`))!;
      expect(values.length).toBe(rows * columns);
      // GPT-2's layers have theirs as [in, out].
      const [ofRow, ofColumn] = config.architecture === 'gpt2' ? [1, rows] : [columns, 1];
      return { values, at: (row, column) => row * ofRow + column * ofColumn };
    });
    for (const { module, rank, a, b } of moduleLayers.filter((one) => one.layer === layer)) {
      const columns = a.length / rank;
      for (const [place, [{ values, at }, row]] of rowsOf.get(module)!.entries()) {
        for (let column = 0; column < columns; column++) {
          let sum = values[at(row, column)]!;
          for (let k = 0; k < rank; k++) sum += b[place * rank + k]! * a[k * columns + column]!;
          values[at(row, column)] = sum;
        }
      }
    }
  }
  const written = tensors.map(({ name, shape, values }) => ({
    name,
    shape,
    data: new Uint8Array(values.buffer),
  }));
  writeFileSync(file, safetensorsBytes(written));
  return merged;
}

/** The logits at each position of a prompt. */
function logitsOf(
  engine: Engine,
  prompt: readonly number[],
  adapter: AdapterWeights | null,
  options: TestExecutorOptions,
) {
  const executor = openExecutor(engine, {
    maxLogitRows: prompt.length,
    maxAdapters: 1,
    maxLoraRank: MAX_RANK,
    ...options,
  });
  if (adapter !== null) executor.adapters!.put(0, adapter);
  const driver = new SequenceDriver(executor, engine.manifest.config, adapter === null ? -1 : 0);
  driver.begin(prompt.length);
  const positions = prompt.map((_, position) => position);
  const logits = driver.logitsAt(prompt, positions, 23);
  executor.close();
  return logits;
}

const VARIANTS = [
  'gqa',
  'gpt2',
  'phi3',
  'qwen2',
  'qwen3',
  'gemma2',
  'gemma3',
  'mistral',
  'qwen3moe',
  'mixtral',
];

it.each([...VARIANTS, ...STATEFUL])(
  'tiny-%s: an adapter beside the weights gives the logits of one that is merged into them',
  async (variant) => {
    const base = await engines.get(pathOf(variant), 'f32');
    const { config } = base.manifest;
    const modules = [...baseModules(config).shapes.keys()];
    const adapter = randomAdapter(config, 7, { maxRank: MAX_RANK, unchanged: 0.2, modules });
    const merged = await engines.get(merge(variant, config, adapter), 'f32');
    const prompt = new Random(3).tokens(PROMPT_LENGTH, config.vocabSize);
    for (const instructionSet of instructionSets) {
      const beside = logitsOf(base, prompt, adapter, { instructionSet });
      const expected = logitsOf(merged, prompt, null, { instructionSet });
      const without = logitsOf(base, prompt, null, { instructionSet });
      for (const [position, logits] of expected.entries()) {
        const where = `position ${position} on ${instructionSet}`;
        const reference = Array.from(logits);
        expect(greatestDifference(reference, beside[position]!), where).toBeLessThan(DIFFERENCE_MAX);
        expect(greatestDifference(reference, without[position]!), where).toBeGreaterThan(
          STATEFUL.includes(variant) ? SMALL_CHANGE_MIN : CHANGE_MIN,
        );
      }
    }
  },
);
