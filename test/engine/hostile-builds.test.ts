import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { buildEngine } from '../../engine/building/builder.js';
import { type Engine, EngineError } from '../../engine/building/engine.js';
import { NativeExecutor } from '../../engine/executors/native/native-executor.js';
import { CheckpointError } from '../../models/checkpoints/checkpoint.js';
import { ggufBytes } from '../../tools/support/gguf-writer.js';
import { fuzzRuns } from '../../tools/support/mutate.js';
import { Random } from '../../tools/support/random.js';
import { safetensorsBytes } from '../../tools/support/safetensors-writer.js';
import { makeStepBatch } from '../../tools/support/step-batch.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { executorOptions } from '../support/native-options.js';
import { ggufTensors, TINY_GGUF_METADATA, tinyTensors, writeTinyModel } from '../support/tiny-checkpoint.js';

const root = temporaryFolder('skein-hostile');

const HUGE = [0n, 1n, 2n ** 31n, 2n ** 32n - 1n, 2n ** 40n, 2n ** 53n, 2n ** 63n, 2n ** 64n - 1n];

/** Some bytes replaced, a word made huge, the end cut off or grown; weights more often than what describes them. */
function changed(original: Buffer, random: Random): Buffer {
  const copy = Buffer.from(original);
  const place = () => (random.below(2) === 0 ? random.below(copy.length) : random.below(copy.length / 4));
  for (let i = random.below(4); i > 0; i--) copy[place()] = random.below(256);
  if (random.below(4) === 0) {
    const at = Math.min(place(), copy.length - 8);
    copy.writeBigUInt64LE(HUGE[random.below(HUGE.length)]!, at);
  }
  if (random.below(6) === 0) return copy.subarray(0, random.below(copy.length));
  if (random.below(6) === 0) return Buffer.concat([copy, Buffer.alloc(random.below(100))]);
  return copy;
}

/** Runs one step of a model that could be built. Its weights may be NaN; it may touch only its own memory. */
function computeWith(engine: Engine): void {
  const loadable = { ...engine, tensors: engine.manifest.tensors, packedFolder: engine.directory };
  const executor = new NativeExecutor(
    loadable,
    executorOptions({ maxSeqLen: 32, numBlocks: 4, maxNumTokens: 8 }),
  );
  try {
    const inverseFrequencies = new Float32Array(executor.promptRowWidth).fill(0.1);
    const sequence = { tokens: [1, 2, 3], cached: 0, blocks: [0] };
    executor.forward(makeStepBatch([sequence], { tokensPerBlock: 16, inverseFrequencies, newBlocks: [0] }));
  } finally {
    executor.close();
  }
}

const safetensorsModel = writeTinyModel(join(root, 'model'));
const FORMATS = [
  {
    name: 'GGUF',
    original: ggufBytes(TINY_GGUF_METADATA, ggufTensors()),
    file: join(root, 'changed.gguf'),
    model: join(root, 'changed.gguf'),
  },
  {
    name: 'safetensors',
    original: safetensorsBytes(tinyTensors()),
    file: join(safetensorsModel, 'model.safetensors'),
    model: safetensorsModel,
  },
];

describe('a changed file of weights', () => {
  it.for(FORMATS)(
    '$name: is refused, or becomes an engine that computes',
    async ({ original, file, model }, { task }) => {
      const runs = fuzzRuns(150);
      let built = 0;
      for (let run = 0; run < runs; run++) {
        writeFileSync(file, changed(original, new Random(run)));
        const precision = (['f32', 'bf16'] as const)[run % 2]!;
        try {
          computeWith(
            await buildEngine({ model, outputDirectory: join(root, 'engine'), precision, threads: 2 }),
          );
          built++;
        } catch (error) {
          if (!(error instanceof CheckpointError || error instanceof EngineError)) {
            throw new Error(`run ${run}: ${String(error)}`, { cause: error });
          }
        }
      }
      expect(built).toBeGreaterThan(0);
      expect(built).toBeLessThan(runs);
      task.meta.tried = { what: 'files', count: runs };
    },
  );
});
