import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Engine, loadableEngine } from '../../../engine/building/engine.js';
import { cachedEngine } from '../../../engine/building/engine-cache.js';
import {
  ENCODER_TOKENS_PER_BLOCK,
  EncoderBatch,
  encoderBlocks,
} from '../../../engine/encoder/encoder-batch.js';
import { ropeTableOf } from '../../../engine/encoder/load-encoder.js';
import { NativeExecutor } from '../../../engine/executors/native/native-executor.js';
import { Random } from '../../soak/random.js';
import { markdownTable } from '../../support/markdown-table.js';
import type { Precision } from './side.js';

const [BATCH_TOKENS, LENGTHS, STEPS] = [2048, [16, 128, 512], 4] as const;
/** Kinds of operation below this share are one column. */
const MIN_SHARE = 0.02;

const LIMITS = {
  maxNumTokens: BATCH_TOKENS,
  maxNumSequences: BATCH_TOKENS / LENGTHS[0],
  maxSeqLen: LENGTHS.at(-1)!,
};

/** A full batch of one length: tokens a second, and the share of each kind of operation. */
interface Parts {
  name: string;
  tokensPerSecond: number;
  shares: Map<string, number>;
}

/** A table of what the kinds of operation take of Skein's steps, for full batches of texts of one length. */
export async function partsTable(folder: string, threads: number): Promise<string> {
  const rows: Parts[] = [];
  for (const precision of ['f32', 'bf16', 'int8'] as const)
    rows.push(...(await partsOf(folder, precision, threads)));
  const kinds = [...new Set(rows.flatMap(({ shares }) => [...shares.keys()]))].filter((kind) =>
    rows.some(({ shares }) => (shares.get(kind) ?? 0) >= MIN_SHARE),
  );
  const percent = (share: number) => `${(100 * share).toFixed(0)} %`;
  const cells = rows.map(({ name, tokensPerSecond, shares }) => {
    const shown = kinds.map((kind) => shares.get(kind) ?? 0);
    const rest = 1 - shown.reduce((sum, share) => sum + share, 0);
    return [name, tokensPerSecond.toFixed(0), ...shown.map(percent), percent(rest)];
  });
  return markdownTable(['a step of 2048 tokens', 'tokens/s', ...kinds, 'others'], cells);
}

async function partsOf(model: string, precision: Precision, threads: number): Promise<Parts[]> {
  const cacheDirectory = mkdtempSync(join(tmpdir(), 'skein-encoder-parts-'));
  try {
    const engine = await cachedEngine({ model, precision, cacheDirectory });
    const { maxNumSequences } = LIMITS;
    const executor = new NativeExecutor(loadableEngine(engine), {
      threads,
      ...LIMITS,
      maxLogitRows: maxNumSequences,
      numBlocks: encoderBlocks(LIMITS),
      tokensPerBlock: ENCODER_TOKENS_PER_BLOCK,
      kvDtype: precision === 'f32' ? 'f32' : 'bf16',
    });
    try {
      return LENGTHS.map((length) => stepsOf(executor, engine, precision, length));
    } finally {
      executor.close();
    }
  } finally {
    rmSync(cacheDirectory, { recursive: true, force: true });
  }
}

function stepsOf(executor: NativeExecutor, engine: Engine, precision: Precision, length: number): Parts {
  const { config } = engine.manifest;
  const batch = new EncoderBatch(LIMITS, config.encoder!, ropeTableOf(config, LIMITS.maxNumSequences));
  const random = new Random(3);
  batch.pack(
    Array.from({ length: BATCH_TOKENS / length }, () => ({
      tokenIds: Int32Array.from(Array.from({ length }, () => random.integer(5, 999))),
      tokenTypes: null,
    })),
  );
  executor.forward(batch);
  executor.profile(true);
  const beginMs = performance.now();
  for (let i = 0; i < STEPS; i++) executor.forward(batch);
  const seconds = (performance.now() - beginMs) / 1000;
  const kinds = Object.entries(executor.profile(false));
  const all = kinds.reduce((sum, [, spent]) => sum + spent, 0);
  return {
    name: `${precision}, ${BATCH_TOKENS / length} x ${length}`,
    tokensPerSecond: (STEPS * BATCH_TOKENS) / seconds,
    shares: new Map(kinds.map(([kind, spent]) => [kind, spent / all])),
  };
}
