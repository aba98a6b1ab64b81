import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { TowerPicture } from '../../callbacks/tower-messages.js';
import type { InferenceRequest, Tensor } from '../../callbacks/types.js';
import type { Engine } from '../../engine/building/engine.js';
import { openTowerEngine } from '../../engine/building/tower-engine.js';
import { type LoadedTower, loadTower, type TowerParams } from '../../engine/tower/load-tower.js';
import { pictureRows } from '../../models/towers/picture-places.js';
import { openExecutor, TestEngines } from '../../tools/support/test-engine.js';
import { type RunOptions, runLoop } from '../bitwise/run-loop.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { writeMadeGgufs } from '../support/made-mmproj.js';
import { numbers, writeMadeModel } from '../support/made-models.js';
import {
  MADE_TOWERS,
  type MadeTower,
  madePictures,
  madeTower,
  writeMadeTower,
} from '../support/made-towers.js';
import { instructionSets } from '../support/native-options.js';

/** Share of the greatest number of the rows, of which that of transformers' own float32 is up to 1e-6. */
const ROW_DIFFERENCE_MAX = 2e-6;
/** Of log-probabilities, which the goldens have in float64. */
const LOG_PROB_DIFFERENCE_MAX = 2e-5;

const folder = temporaryFolder('skein-towers');
const engines = new TestEngines();
afterAll(() => engines.remove());

const engineOf = (made: MadeTower) => engines.get(writeMadeTower(folder, made), 'f32');

/** What `use` makes of the model's tower. */
async function withTower<T>(
  made: MadeTower,
  params: TowerParams,
  use: (tower: LoadedTower) => T,
): Promise<T> {
  const { directory } = await engineOf(made);
  const tower = await loadTower(directory, { maxPatches: 512, threads: 1, ...params });
  try {
    return use(tower);
  } finally {
    tower.close();
  }
}

/** Rows of all pictures, seen in one batch. */
const rowsOf = (made: MadeTower, params: TowerParams = {}) =>
  withTower(made, params, (tower) => tower.see(madePictures(made)).slice(0, made.rows.length * made.width));

/** A request with the prompt of the golden, whose pictures have these rows. */
function requestOf({ prompt, places, grids, width, tokens }: MadeTower, rows: Float32Array, merge: number) {
  const count = rows.length / width;
  const sides = grids.map((grid) => grid.map((side) => side / merge));
  const ids = Int32Array.from(prompt);
  const spans = places.map((place, i) => [place, sides[i]![0]!, sides[i]![1]!] as const);
  for (const [start, down, across] of spans)
    for (let i = 0; i < down * across; i++) ids[start + i] = 128 + ((start * 7919 + i * 31) % 2 ** 30);
  const inputs: Record<string, Tensor> = {
    input_ids: { shape: [1, ids.length], data: ids },
    request_output_len: { shape: [1], data: Int32Array.of(tokens.length) },
    random_seed: { shape: [1], data: BigUint64Array.of(0n) },
    return_log_probs: { shape: [1], data: Uint8Array.of(1) },
    prompt_embedding_table: { shape: [count, width], data: rows },
    image_grids: { shape: [spans.length, 3], data: Int32Array.from(spans.flat()) },
  };
  return { requestId: 1n, inputs } satisfies InferenceRequest;
}

function answerOf(engine: Engine, request: InferenceRequest, options: Partial<RunOptions> = {}) {
  const executor = openExecutor(engine, { tokensPerBlock: 16, maxSeqLen: 128, maxLogitRows: 4 });
  const { numBlocks } = executor.options;
  const { answers } = runLoop(executor, engine.manifest.config, [{ iteration: 0, request }], {
    ...{ schedulerPolicy: 'GUARANTEED_NO_EVICT', numBlocks, maxNumTokens: 128, chunked: false },
    ...options,
  });
  executor.close();
  return answers.get(1n)!;
}

describe.each(MADE_TOWERS)('the tower of $name', (made) => {
  const expected = made.rows.flat();
  const greatest = Math.max(...expected.map(Math.abs));

  it.each(['native', 'wasm'] as const)("makes transformers' rows on the %s executor", async (executor) => {
    const rows = await rowsOf(made, { executor });
    const worst = expected.reduce((most, one, i) => Math.max(most, Math.abs(one - rows[i]!)), 0);
    expect(rows).toHaveLength(expected.length);
    expect(worst / greatest).toBeLessThan(ROW_DIFFERENCE_MAX);
  });

  it('makes the same bits alone, among eight pictures, and with two threads', async () => {
    const rows = await rowsOf(made);
    const pictures = madePictures(made);
    const among = await withTower(made, { threads: 2 }, (tower) => {
      const others = pictures.map((one) => ({ ...one, patches: one.patches.map((x) => 1 - x) }));
      const eight = Array.from({ length: 8 - pictures.length }, (_, i) => others[i % others.length]!);
      const counts = [...eight, ...pictures].map(({ grid }) => pictureRows(tower.config, grid));
      const end = made.width * counts.reduce((sum, count) => sum + count, 0);
      return tower.see([...eight, ...pictures]).slice(end - rows.length, end);
    });
    const alone = await withTower(made, {}, (tower) =>
      pictures.flatMap((picture) => {
        const count = pictureRows(tower.config, picture.grid);
        return [...tower.see([picture]).slice(0, count * made.width)];
      }),
    );
    expect(alone).toEqual([...rows]);
    expect(among).toEqual(rows);
  });
});

describe.each(MADE_TOWERS)('$name', (made) => {
  it('answers prompts with pictures as transformers does, whole and in chunks', async () => {
    const engine = await engineOf(made);
    const merge = await withTower(made, {}, ({ config }) => config.merge);
    const request = requestOf(made, await rowsOf(made), merge);
    const { tokens, logProbs, error } = answerOf(engine, request);
    expect(error).toBe('');
    expect(tokens).toEqual(made.tokens);
    const worst = made.logProbs.reduce((most, one, i) => Math.max(most, Math.abs(one - logProbs[i]!)), 0);
    expect(worst).toBeLessThan(LOG_PROB_DIFFERENCE_MAX);
    const chunks = answerOf(engine, request, { chunked: true, maxNumTokens: 16 });
    expect(chunks).toEqual({ ...chunks, tokens, logProbs });
  });
});

it('sees large pictures through windows on both executors, with the same bits beside others and with two threads', async () => {
  const made = madeTower('qwen2.5-vl');
  const large = { patches: numbers('large', [26 * 22, 24], 0, 0.5), grid: { rows: 26, columns: 22 } };
  const [small] = madePictures(made);
  const length = 13 * 11 * made.width;
  const seen = (params: TowerParams, before: readonly TowerPicture[] = []) =>
    withTower(made, { maxPatches: 1024, ...params }, (tower) => {
      const begin = before.length * 15 * made.width;
      return tower.see([...before, large]).slice(begin, begin + length);
    });
  const rows = await seen({});
  expect(await seen({ threads: 2 }, [small!, small!])).toEqual(rows);
  const others = await seen({ executor: 'wasm' });
  const greatest = rows.reduce((most, one) => Math.max(most, Math.abs(one)), 0);
  const worst = others.reduce((most, one, i) => Math.max(most, Math.abs(one - rows[i]!)), 0);
  expect(worst / greatest).toBeLessThan(ROW_DIFFERENCE_MAX);
});

it('is one engine from the first files of Qwen2.5-VL, whose text model is not inside of the configuration', async () => {
  const made = madeTower('qwen2.5-vl');
  const { text_config: text, ...outer } = made.config as Record<string, Record<string, unknown>>;
  const { rope_parameters: rope, model_type: _, architectures: __, ...fields } = text!;
  const { rope_theta, mrope_section } = rope as Record<string, unknown>;
  const first = {
    ...{ ...fields, ...outer, rope_theta },
    rope_scaling: { type: 'mrope', mrope_section },
  };
  const flat = { ...made, config: first } as MadeTower;
  const directory = writeMadeModel(join(folder, 'first'), flat, [], (tensor) => ({
    ...tensor,
    name: tensor.name.replace('model.visual.', 'visual.').replace('model.language_model.', 'model.'),
  }));
  const [one, other] = await Promise.all([engineOf(made), engines.get(directory, 'f32')]);
  expect(other.manifest.config).toEqual(one.manifest.config);
  const [own, another] = [one, other].map(({ directory: of }) => openTowerEngine(of));
  expect(another!.config).toEqual(own!.config);
});
it.each([
  ['qwen3-vl', '<|image_pad|>'],
  ['smolvlm', '<image>'],
  ['pixtral', '[IMG]'],
])(
  'answers prompts with pictures as transformers does from GGUF files of %s, with its tower next to it',
  async (name, token) => {
    const made = madeTower(name);
    const engine = await engines.get(writeMadeGgufs(folder, name, token), 'f32');
    const tower = await loadTower(engine.directory, { maxPatches: 320, threads: 1 });
    const rows = tower.see(madePictures(made)).slice(0, made.rows.length * made.width);
    const request = requestOf(made, rows, tower.config.merge);
    tower.close();
    const { tokens, logProbs, error } = answerOf(engine, request);
    expect(error).toBe('');
    expect(tokens).toEqual(made.tokens);
    const worst = made.logProbs!.reduce((most, one, i) => Math.max(most, Math.abs(one - logProbs[i]!)), 0);
    expect(worst).toBeLessThan(LOG_PROB_DIFFERENCE_MAX);
  },
);

it("is one engine from files that have experts' matrices as [out, in], and from those of its makers, as [in, out]", async () => {
  const made = madeTower('qwen3-vl-moe');
  const turned = writeMadeModel(join(folder, 'turned'), made, [], (tensor) => {
    if (!tensor.name.includes('.experts.')) return tensor;
    const [experts = 0, rows = 0, columns = 0] = tensor.shape;
    const numbers = new Float32Array(tensor.data.slice().buffer);
    const other = numbers.map((_, i) => {
      const [expert, at] = [Math.floor(i / (rows * columns)), i % (rows * columns)];
      return numbers[expert * rows * columns + (at % rows) * columns + Math.floor(at / rows)]!;
    });
    return { ...tensor, shape: [experts, columns, rows], data: new Uint8Array(other.buffer) };
  });
  const [one, other] = await Promise.all([engineOf(made), engines.get(turned, 'f32')]);
  expect(readFileSync(other.weightsFile).equals(readFileSync(one.weightsFile))).toBe(true);
});

it.each(['qwen3-vl', 'gemma3'])(
  'makes rows of %s near each other on every instruction set, and in bf16',
  async (name) => {
    const made = madeTower(name);
    const { directory } = await engines.get(writeMadeTower(folder, made), 'bf16');
    for (const instructionSet of instructionSets) {
      const others = await rowsOf(made, { instructionSet });
      const worst = made.rows.flat().reduce((most, one, i) => Math.max(most, Math.abs(one - others[i]!)), 0);
      expect(worst, instructionSet).toBeLessThan(2e-5);
      const tower = await loadTower(directory, { maxPatches: 320, threads: 1, instructionSet });
      const rounded = tower.see(madePictures(made)).slice(0, others.length);
      tower.close();
      const off = rounded.reduce((sum, one, i) => sum + Math.abs(one - others[i]!), 0) / rounded.length;
      expect(off, instructionSet).toBeLessThan(0.05);
    }
  },
);
