import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { NativeExecutor } from '../../engine/executors/native/native-executor.js';
import { ropeFrequencies } from '../../network/rope.js';
import { makeStepBatch } from '../../tools/support/step-batch.js';
import { engineOptions, nativeEngine, openExecutor, TestEngines } from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { MADE_HEADS, madeHeadGguf, madeHeadPath } from '../support/made-heads.js';

/** The standard deviation of the logits is about 1. */
const LOGIT_DIFFERENCE_MAX = 2e-4;
const SIZES = { maxSeqLen: 96, tokensPerBlock: 16 };
const BLOCKS = [0, 1, 2, 3, 4, 5];

const folder = temporaryFolder('skein-heads');
const engines = new TestEngines();
afterAll(() => engines.remove());

const differenceOf = (found: Float32Array, expected: readonly number[]) =>
  Math.max(...expected.map((value, i) => Math.abs(found[i]! - value)));

const HEADS = [
  ...MADE_HEADS.map((head) => ({ ...head, of: head.name, path: () => madeHeadPath(folder, head.name) })),
  ...MADE_HEADS.map((head) => ({
    ...head,
    of: `${head.name} from a GGUF of llama.cpp's converter`,
    path: () => madeHeadGguf(join(folder, `${head.name}.gguf`), head.name),
  })),
];

describe.each(HEADS)('the head of $of against one of transformers', ({ path, ids, logits, rounds }) => {
  it('has the same logits over a whole prompt, in chunks too, and through two rounds of a draft', async () => {
    const engine = await engines.get(path(), 'f32', true);
    const { config } = engine.manifest;
    const { hiddenSize: width, vocabSize } = config;
    const { inverseFrequencies } = ropeFrequencies(config.rope);
    const model = openExecutor(engine, SIZES);
    const loadable = nativeEngine(engine);
    const plan = engine.plan.head!;
    const options = engineOptions({ ...engine, plan }, { ...SIZES, maxLogitRows: 64 });
    const step = { tokensPerBlock: SIZES.tokensPerBlock, inverseFrequencies, newBlocks: BLOCKS };
    const whole = makeStepBatch(
      [{ tokens: ids, cached: 0, blocks: BLOCKS, logits: 'last', stateSlot: 0 }],
      step,
    );
    const rows = new Float32Array(ids.length * width);
    model.forward({ ...whole, keptRows: rows });

    for (const chunk of [ids.length, 13]) {
      const head = new NativeExecutor({ ...loadable, plan }, options);
      const own = new Float32Array(ids.length * width);
      const tokens = ids.slice(1);
      const feed = (cached: number, rowInputs: Float32Array) => {
        const newBlocks = cached === 0 ? BLOCKS : [];
        const sequence = { tokens: [...tokens], cached, blocks: BLOCKS, logits: 'all' as const };
        const batch = makeStepBatch([sequence], { ...step, newBlocks });
        return head.forward({ ...batch, rowInputs, keptRows: own });
      };
      const all = tokens.length;
      const found: Float32Array[] = [];
      for (let begin = 0; begin < all; begin += chunk) {
        tokens.length = Math.min(all, begin + chunk);
        for (let i = begin; i < tokens.length; i++) tokens[i] = ids[i + 1]!;
        const view = feed(begin, rows.subarray(begin * width));
        for (let i = 0; i < tokens.length - begin; i++)
          found.push(view.slice(i * vocabSize, (i + 1) * vocabSize));
        own.copyWithin(0, (tokens.length - begin - 1) * width, (tokens.length - begin) * width);
      }
      for (const { place, values } of logits)
        expect(differenceOf(found[place]!, values), `place ${place}`).toBeLessThan(LOGIT_DIFFERENCE_MAX);
      let last = found.at(-1)!;
      for (const { token, logits: expected } of rounds) {
        expect(last.indexOf(Math.max(...last))).toBe(token);
        tokens.push(token);
        last = feed(tokens.length - 1, own.slice(0, width)).slice(0, vocabSize);
        expect(differenceOf(last, expected), `token ${token}`).toBeLessThan(LOGIT_DIFFERENCE_MAX);
      }
      head.close();
    }
    model.close();
  });
});
