import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { countOf, type FlagValues, SIDES_FLAGS } from '../../compare/flags.js';
import { SHAPE_FLAGS, ShapeFile } from '../../compare/shape/shape-file.js';
import { markdownTable } from '../../support/markdown-table.js';
import { median } from '../../support/statistics.js';
import { type BenchOutput, defineBench } from '../bench.js';
import { compiled } from '../compiled.js';
import { roundsFlag } from '../flags.js';

const ANSWER_TOKENS = 8;
/** Tokens that every shape has, and that end nothing. */
const FIRST_TOKEN = 300;
const NUM_TOKENS = 40_000;

const FLAGS = {
  shape: { ...SHAPE_FLAGS.shape, default: 'llama-1b', help: `${SHAPE_FLAGS.shape.help} (default llama-1b)` },
  type: { ...SHAPE_FLAGS.type, default: 'Q8_0', help: 'type of the matrices (default Q8_0)' },
  tokens: { argument: 'N', default: '4096', help: 'tokens of the prompt (default 4096)' },
  folder: SHAPE_FLAGS.folder,
  threads: SIDES_FLAGS.threads,
  ...roundsFlag(3),
} as const;
type Flags = FlagValues<typeof FLAGS>;

/** How a prompt was answered. */
interface Answer {
  /** Seconds to the first token. */
  seconds: number;
  /** Tokens of the prompt that were cached. */
  cached: number;
  /** The tokens drawn and their log-probs. */
  drawn: string;
}

/**
 * A prompt that an engine has computed, asked again after a restart: the time to the first token, read from
 * the disk and computed. The files have just been written, so the system may have them in memory, as after a
 * restart of a server; the bits must be the same.
 */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/kv-cache.md',
  sections: ['disk-cache'],
  async run(flags, output) {
    const file = new ShapeFile(flags);
    mkdirSync(flags.folder, { recursive: true });
    try {
      file.write();
      await compare(flags, file, output);
    } finally {
      file.remove();
    }
  },
});

async function compare(flags: Flags, file: ShapeFile, { progress, report }: BenchOutput): Promise<void> {
  const threads = countOf('threads', flags.threads);
  const length = countOf('tokens', flags.tokens);
  const rounds = countOf('rounds', flags.rounds);
  const disk = join(file.cache, 'blocks');
  const computed: number[] = [];
  const read: number[] = [];
  let bytes = 0;
  for (let round = 0; round < rounds; round++) {
    rmSync(disk, { recursive: true, force: true });
    const prompt = drawPrompt(length, round);
    const before = await ask(file, { disk, threads, prompt });
    bytes = readdirSync(disk).reduce((sum, name) => sum + statSync(join(disk, name)).size, 0);
    const after = await ask(file, { disk, threads, prompt });
    if (after.drawn !== before.drawn) {
      throw new Error(`Round ${round + 1}: from the disk ${after.drawn}, computed ${before.drawn}.`);
    }
    if (before.cached > 0 || after.cached < length - 64) {
      throw new Error(
        `Round ${round + 1}: ${before.cached} and ${after.cached} tokens of ${length} were cached.`,
      );
    }
    computed.push(before.seconds);
    read.push(after.seconds);
    progress(
      `round ${round + 1}: computed ${before.seconds.toFixed(2)} s, from the disk ${after.seconds.toFixed(3)} s`,
    );
  }
  const ratio = median(computed) / median(read);
  report({
    section: 'disk-cache',
    conditions: `${threads} threads, ${file.name} with random weights, a prompt of ${length} tokens, medians of ${rounds} rounds`,
    lines: [
      markdownTable(
        ['', 'seconds to the first token'],
        [
          ['computed', median(computed).toFixed(2)],
          ['from the disk, after a restart', median(read).toFixed(3)],
        ],
      ),
      '',
      `From the disk it comes ${ratio.toFixed(1)} times as fast, with the same tokens and log-probs; the files have ${(bytes / 1e6).toFixed(0)} MB.`,
    ],
  });
}

/** Starts an engine, asks one thing, and ends the engine. */
async function ask(
  file: ShapeFile,
  { disk, threads, prompt }: { disk: string; threads: number; prompt: number[] },
): Promise<Answer> {
  const { Skein } = await compiled<typeof import('../../../src/index.js')>('src/index.js');
  const skein = await Skein.load({
    model: file.path,
    weights: 'stored',
    cacheDir: file.cache,
    threads,
    chunkedPrefill: true,
    prefixCaching: true,
    diskCache: disk,
    maxContextTokens: prompt.length + 1024,
    kvCacheTokens: 2 * (prompt.length + 1024),
  });
  try {
    // The first step of an engine touches its memory.
    await skein.complete({ promptTokens: [FIRST_TOKEN], maxTokens: 1, temperature: 0 });
    const startMs = performance.now();
    let seconds = 0;
    let cached = 0;
    const drawn: string[] = [];
    const asked = {
      promptTokens: prompt,
      maxTokens: ANSWER_TOKENS,
      temperature: 0,
      logProbs: 0,
      ignoreEos: true,
    };
    for await (const piece of skein.generate(asked)) {
      if (drawn.length === 0) seconds = (performance.now() - startMs) / 1000;
      cached = piece.cachedTokens ?? cached;
      drawn.push(JSON.stringify([piece.tokens, piece.logProbs]));
    }
    return { seconds, cached, drawn: drawn.join(' ') };
  } finally {
    await skein.close();
  }
}

function drawPrompt(length: number, round: number): number[] {
  let drawn = round + 1;
  return Array.from({ length }, () => {
    drawn = (drawn * 48_271) % 2_147_483_647;
    return FIRST_TOKEN + (drawn % NUM_TOKENS);
  });
}
