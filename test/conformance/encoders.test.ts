import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { EncoderSequence } from '../../callbacks/encoder-messages.js';
import type { EngineTensor } from '../../engine/directory/engine-directory.js';
import { encodeBatch } from '../../engine/encoder/encode-batch.js';
import {
  ENCODER_TOKENS_PER_BLOCK,
  EncoderBatch,
  encoderBlocks,
  encoderRows,
} from '../../engine/encoder/encoder-batch.js';
import { ropeTableOf } from '../../engine/encoder/load-encoder.js';
import type { Executor } from '../../engine/executors/executor.js';
import { nativeKind } from '../../engine/kinds/native-kind.js';
import { tensorflowKind } from '../../engine/kinds/tensorflow-kind.js';
import { wasmKind } from '../../engine/kinds/wasm-kind.js';
import { splitPlan } from '../../engine/sharding/split-plan.js';
import type { EncoderConfig } from '../../models/encoder-config.js';
import { nativeEngine, TestEngines, tinyModelPath } from '../../tools/support/test-engine.js';
import { greatestDifference } from '../reference/compare-logits.js';
import { describeExecutors, EXECUTORS } from '../support/executors.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { type MadeEmbedder, madeEmbedder, writeMadeEmbedder } from '../support/made-embedders.js';
import { TINY_ENCODERS } from '../support/test-encoder.js';

interface Case {
  model: string;
  ids: number[];
  types: number[];
  /** The embedding, or the score after its activation. */
  output: number[];
}

const LIMITS = { maxNumTokens: 1024, maxNumSequences: 16, maxSeqLen: 640 };
/** Greatest difference of an embedding or score in f32: the bound of test/reference/encoders.test.ts. */
const F32_DIFFERENCE_MAX = 2e-5;

const goldens = new URL('../goldens/encoders.json', import.meta.url);
const { cases } = JSON.parse(readFileSync(goldens, 'utf8')) as { cases: Case[] };
const engines = new TestEngines();
afterAll(() => engines.remove());

/** The rows that come out of one batch, with a score's activation. */
function encode(executor: Executor, config: EncoderConfig, batch: EncoderBatch, given: readonly Case[]) {
  batch.pack(
    given.map(({ ids, types }) => ({ tokenIds: Int32Array.from(ids), tokenTypes: Int32Array.from(types) })),
  );
  const rows = executor.forward(batch);
  const width = rows.length / given.length;
  const isSigmoid = config.head.kind === 'score' && config.head.activation === 'sigmoid';
  return given.map((_, i) => {
    const row = rows.slice(i * width, (i + 1) * width);
    return isSigmoid ? row.map((x) => 1 / (1 + Math.exp(-x))) : row;
  });
}

/** What sentence-transformers answers for lists of tokens, as cases. */
const MADE = ['qwen3-embedding', 'e5-mistral', 'embeddinggemma', 'modernbert'].map(madeEmbedder);
/** Their scores depend on the distance of two tokens. */
const BY_DISTANCE = ['mpnet', 'deberta-v2', 'deberta-v3'].map(madeEmbedder);
const madeFolder = temporaryFolder('skein-conformance-encoders');

/** Ranks share no mixture: see splitPlan. */
const OF_EXPERTS = [madeEmbedder('nomic-embed-moe')];
/** Its rows are means with weights. */
const WEIGHTED = [madeEmbedder('qwen2-weighted')];
/** It gives something of each token too. */
const OF_TOKENS = madeEmbedder('bge-m3');

function modelsOf(name: string) {
  const more = name === 'native' || name === 'wasm' ? BY_DISTANCE : [];
  const weighted = name === 'tensorflow' ? [] : WEIGHTED;
  return [...MADE, ...more, ...weighted, ...(name === 'ranks' ? [] : OF_EXPERTS)];
}

describeExecutors(
  (on) => {
    it('gives the weights and vectors of tokens beside embeddings, by the rules of FlagEmbedding', async () => {
      const made = OF_TOKENS;
      const engine = await engines.get(writeMadeEmbedder(join(madeFolder, made.name), made), 'f32');
      const { config, maxSeqLen } = engine.manifest;
      const limits = { ...LIMITS, maxSeqLen };
      const encoder = config.encoder!;
      const executor = await on.open(nativeEngine(engine), {
        ...limits,
        threads: 1,
        maxLogitRows: encoderRows(limits, encoder.head),
        numBlocks: encoderBlocks(limits),
        tokensPerBlock: ENCODER_TOKENS_PER_BLOCK,
        kvDtype: 'f32',
      });
      const batch = new EncoderBatch(limits, encoder, ropeTableOf(config, LIMITS.maxNumSequences));
      const loaded = {
        config: encoder,
        outputWidth: config.hiddenSize,
        encode: (sequences: readonly EncoderSequence[]) => {
          batch.pack(sequences);
          return executor.forward(batch);
        },
      };
      const asked = made.tokens!.flatMap(({ ids, output, vectors }) => {
        const sequence = { tokenIds: Int32Array.from(ids), tokenTypes: null };
        const more = { ...sequence, output: 'vectors' as const };
        return [
          { sequence, expected: output },
          { sequence: more, expected: vectors.flat() },
        ];
      });
      const { rows, errors } = encodeBatch(
        loaded,
        asked.map(({ sequence }) => sequence),
      );
      expect(errors).toEqual(asked.map(() => null));
      for (const [i, { expected }] of asked.entries())
        expect(greatestDifference(expected, rows[i]!)).toBeLessThan(F32_DIFFERENCE_MAX);
      for (const { ids, weights } of made.tokens!) {
        const sequence = { tokenIds: Int32Array.from(ids), tokenTypes: null, output: 'weights' as const };
        const given = encodeBatch(loaded, [sequence]).rows[0]!;
        for (const [id, weight] of weights) {
          const greatest = Math.max(...given.filter((_, i) => ids[i] === id));
          expect(Math.abs(greatest - weight)).toBeLessThan(F32_DIFFERENCE_MAX);
        }
      }
      executor.close();
    });

    it.each(modelsOf(on.name))(
      '$name gives the rows of sentence-transformers, in one ragged batch and alone',
      async (made) => {
        const engine = await engines.get(writeMadeEmbedder(join(madeFolder, made.name), made), 'f32');
        const { config, maxSeqLen } = engine.manifest;
        const executor = await on.open(nativeEngine(engine), {
          ...LIMITS,
          maxSeqLen,
          threads: 1,
          maxLogitRows: LIMITS.maxNumSequences,
          numBlocks: encoderBlocks(LIMITS),
          tokensPerBlock: ENCODER_TOKENS_PER_BLOCK,
          kvDtype: 'f32',
        });
        const rope = ropeTableOf(config, LIMITS.maxNumSequences);
        const batch = new EncoderBatch({ ...LIMITS, maxSeqLen }, config.encoder!, rope);
        const given = made.cases!.map((one) => ({ ...one, model: made.name, types: one.ids.map(() => 0) }));
        const together = encode(executor, config.encoder!, batch, given);
        for (const [i, one] of given.entries()) {
          expect(greatestDifference(one.output, together[i]!), `case ${i}`).toBeLessThan(F32_DIFFERENCE_MAX);
          const [alone] = encode(executor, config.encoder!, batch, [one]);
          if (on.keepsBits) expect(alone, `case ${i}`).toEqual(together[i]);
          else expect(greatestDifference([...together[i]!], alone!)).toBeLessThan(F32_DIFFERENCE_MAX);
        }
        executor.close();
      },
    );

    it.each(TINY_ENCODERS)(
      'tiny %s gives the rows of transformers, in one ragged batch and alone',
      async (model) => {
        const engine = await engines.get(tinyModelPath(model), 'f32');
        const config = engine.manifest.config.encoder!;
        const maxSeqLen = Math.min(LIMITS.maxSeqLen, engine.manifest.maxSeqLen);
        const executor = await on.open(nativeEngine(engine), {
          ...LIMITS,
          maxSeqLen,
          threads: 1,
          maxLogitRows: LIMITS.maxNumSequences,
          numBlocks: encoderBlocks(LIMITS),
          tokensPerBlock: ENCODER_TOKENS_PER_BLOCK,
          kvDtype: 'f32',
        });
        const batch = new EncoderBatch(
          { ...LIMITS, maxSeqLen },
          config,
          ropeTableOf(engine.manifest.config, LIMITS.maxNumSequences),
        );
        const given = cases.filter((one) => one.model === model);
        expect(given.length).toBeGreaterThan(1);
        const together = encode(executor, config, batch, given);
        for (const [i, one] of given.entries()) {
          expect(greatestDifference(one.output, together[i]!), `case ${i}`).toBeLessThan(F32_DIFFERENCE_MAX);
          const [alone] = encode(executor, config, batch, [one]);
          if (on.keepsBits) expect(alone, `case ${i}`).toEqual(together[i]);
          else expect(greatestDifference([...together[i]!], alone!)).toBeLessThan(F32_DIFFERENCE_MAX);
        }
        executor.close();
      },
    );
  },
  EXECUTORS.filter(({ runsEncoders }) => runsEncoders),
);

it('an executor without weighted means says so', async () => {
  const [made] = WEIGHTED as [MadeEmbedder];
  const { plan } = await engines.get(writeMadeEmbedder(join(madeFolder, made.name), made), 'f32');
  expect(tensorflowKind.supports(plan)).toBe('The tensorflow executor takes no weighted means of sequences.');
  expect([nativeKind.supports(plan), wasmKind.supports(plan)]).toEqual([null, null]);
});

it('an executor without scores by distance says so, and ranks do', async () => {
  for (const made of BY_DISTANCE) {
    const { plan } = await engines.get(writeMadeEmbedder(join(madeFolder, made.name), made), 'f32');
    expect(tensorflowKind.supports(plan)).toBe(
      'The tensorflow executor has no scores that depend on the distance of two tokens, as those of MPNet and DeBERTa do.',
    );
    expect([nativeKind.supports(plan), wasmKind.supports(plan)]).toEqual([null, null]);
    const shape = { tensorParallelSize: 2, pipelineParallelSize: 1 };
    const tensors = plan.weights.map(({ name, rows, columns }) => ({ name, rows, columns }) as EngineTensor);
    expect(() => splitPlan({ plan, tensors }, shape, 0)).toThrow(
      /^Scores of this model depend on the distance of two tokens, by tables that ranks cannot share\.$/,
    );
  }
});
