import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { countOf, type FlagValues, SIDES_FLAGS } from '../../compare/flags.js';
import { SHAPE_FLAGS, ShapeFile } from '../../compare/shape/shape-file.js';
import { dropFromMemory } from '../../support/drop-from-memory.js';
import { markdownTable } from '../../support/markdown-table.js';
import { type BenchOutput, defineBench } from '../bench.js';
import { positiveOf } from '../flags.js';
import type { Answered, Asked } from './answer-process.js';
import { MemoryGroup } from './memory-group.js';

const PROMPTS = 3;
const ANSWER_TOKENS = 16;
/** Tokens that every shape has, and that end nothing. */
const FIRST_TOKEN = 300;
const NUM_TOKENS = 40_000;

const FLAGS = {
  shape: {
    ...SHAPE_FLAGS.shape,
    default: 'qwen3-moe-16-layers',
    help: `${SHAPE_FLAGS.shape.help} (default qwen3-moe-16-layers)`,
  },
  type: SHAPE_FLAGS.type,
  folder: SHAPE_FLAGS.folder,
  threads: SIDES_FLAGS.threads,
  limit: {
    argument: 'GB',
    default: '2',
    help: 'memory of the process, its pages of files included (default 2)',
  },
  fraction: {
    argument: 'SHARE',
    default: '0.15',
    help: 'share of the experts that memory is counted for (default 0.15)',
  },
  tokens: { argument: 'N', default: '128', help: 'tokens of each prompt (default 128)' },
} as const;
type Flags = FlagValues<typeof FLAGS>;

/** A way to run the model. */
interface Side {
  name: string;
  panels: boolean;
  isLimited: boolean;
}

const SIDES: readonly Side[] = [
  { name: 'as stored, in memory', panels: false, isLimited: false },
  { name: 'as stored, from the disk', panels: false, isLimited: true },
  { name: 'packed, from the disk, first start', panels: true, isLimited: true },
  { name: 'packed, from the disk', panels: true, isLimited: true },
];

/**
 * A mixture larger than the memory that its process may use: answers must have the same bits as with all experts in memory.
 */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/forms.md',
  sections: ['experts-from-disk'],
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
  const limit = 1e9 * positiveOf('limit', flags.limit);
  const length = countOf('tokens', flags.tokens);
  const asked: Omit<Asked, 'panels' | 'expertFraction'> = {
    model: file.path,
    cacheDir: file.cache,
    threads: countOf('threads', flags.threads),
    promptTokens: Array.from({ length: PROMPTS }, (_, seed) => drawPrompt(length, seed)),
    maxTokens: ANSWER_TOKENS,
  };
  const rows: string[][] = [];
  let expected: string[] | null = null;
  let said = '';
  for (const { name, panels, isLimited } of SIDES) {
    const expertFraction = isLimited ? positiveOf('fraction', flags.fraction) : 1;
    // Pages that another process has brought would not count for this one.
    if (isLimited) dropFromMemory(dirname(file.path));
    const { answered, peakBytes } = await answer(
      { ...asked, panels, expertFraction },
      isLimited ? limit : null,
    );
    expected ??= answered.drawn;
    for (const [prompt, drawn] of answered.drawn.entries()) {
      if (drawn === expected[prompt]) continue;
      throw new Error(`${name}: prompt ${prompt + 1} was answered ${drawn}, expected ${expected[prompt]}.`);
    }
    progress(`${name}: loaded in ${answered.loadSeconds.toFixed(1)} s; ${answered.said ?? ''}`);
    said = answered.said ?? said;
    rows.push([
      name,
      answered.loadSeconds.toFixed(1),
      (answered.promptBytes / 1e9).toFixed(1),
      answered.tokensPerSecond.toFixed(2),
      (answered.bytesPerToken / 1e6).toFixed(0),
      peakBytes === null ? '' : (peakBytes / 1e9).toFixed(2),
    ]);
  }
  report({
    section: 'experts-from-disk',
    conditions: `${asked.threads} threads, ${file.name} with random weights, ${PROMPTS} prompts of ${length} tokens one after the other, ${ANSWER_TOKENS} tokens each; where experts come from the disk, the process has ${flags.limit} GB of memory, and counts it for ${flags.fraction} of them`,
    lines: [
      markdownTable(
        ['', 'start, s', 'read by prompts, GB', 'tokens/s', 'read a token, MB', 'most memory, GB'],
        rows,
      ),
      '',
      'All answers have the same tokens and log-probs. At the last start:',
      '',
      `> ${said}`,
    ],
  });
}

async function answer(
  asked: Asked,
  limit: number | null,
): Promise<{ answered: Answered; peakBytes: number | null }> {
  const group = limit === null ? null : new MemoryGroup(limit);
  try {
    const script = fileURLToPath(new URL('./answer-process.ts', import.meta.url));
    const command = `${group?.entry ?? ''}exec "$0" "$@"`;
    const arguments_ = ['-c', command, process.execPath, '--import', 'tsx', script, JSON.stringify(asked)];
    const text = execFileSync('/bin/sh', arguments_, {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
      maxBuffer: 64 << 20,
    });
    return { answered: JSON.parse(text), peakBytes: group?.peakBytes() ?? null };
  } finally {
    await group?.remove();
  }
}

function drawPrompt(length: number, seed: number): number[] {
  let drawn = seed + 1;
  return Array.from({ length }, () => {
    drawn = (drawn * 48_271) % 2_147_483_647;
    return FIRST_TOKEN + (drawn % NUM_TOKENS);
  });
}
