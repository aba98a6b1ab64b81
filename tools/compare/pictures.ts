/**
 * `skein serve` and llama-server side by side with a model that sees, whose weights are random: users with a
 * picture each, a second question on a picture, and users of texts while pictures come, and where none comes:
 * with a tower and without. See --help.
 *
 *     npm run bench:compare -- pictures
 */
import { linkSync, mkdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  countOf,
  type FlagTable,
  type FlagValues,
  flagsOrHelp,
  listOf,
  outputFlag,
  SIDES_FLAGS,
  TURNS_FLAGS,
} from './flags.js';
import { LlamaCpp } from './llama-cpp.js';
import {
  firstAndSecond,
  picturesPerSecond,
  type SeeingServer,
  textsAlone,
  textsBeside,
} from './pictures-load.js';
import { picturesReport } from './pictures-report.js';
import { type ComparisonPlan, runComparison } from './run-comparison.js';
import { spawnSkein, withServer } from './run-server.js';
import { writeRandomMmproj } from './shape/random-gguf.js';
import { SHAPE_FLAGS, ShapeFile } from './shape/shape-file.js';
import type { TowerType } from './shape/tower-shape.js';
import type { Candidate, Values } from './side.js';
import { skeinDigest } from './skein.js';
import { LLAMA_SERVER } from './tables.js';

const { model: _, ...PLACES } = SIDES_FLAGS;
const FLAGS = {
  ...SHAPE_FLAGS,
  shape: { ...SHAPE_FLAGS.shape, default: 'qwen3-vl-2b' },
  type: { ...SHAPE_FLAGS.type, default: 'Q8_0' },
  towers: {
    argument: 'LIST',
    default: 'BF16,Q8_0',
    help: "types of llama-server's tower (default BF16,Q8_0); Skein's is that of the first",
  },
  users: { argument: 'N', default: '8', help: 'users with a picture each (default 8)' },
  side: { argument: 'N', default: '448', help: 'pixels of a side of a picture (default 448)' },
  texts: { argument: 'N', default: '4', help: 'users of texts next to pictures (default 4)' },
  pictures: { argument: 'N', default: '4', help: 'pictures next to them, one after the other (default 4)' },
  ...PLACES,
  ...TURNS_FLAGS,
  rounds: { ...TURNS_FLAGS.rounds, default: '1' },
  ...outputFlag('bench-results/pictures.json'),
} as const satisfies FlagTable;

/** What is measured of a server. */
type PicturesColumn = 'users' | 'second' | 'texts' | 'plain';
const COLUMNS: readonly PicturesColumn[] = ['users', 'texts', 'second', 'plain'];
/** Tokens of a sequence, and how long users of texts are alone. */
const [SEQUENCE_TOKENS, ALONE_MS] = [2048, 6000];

async function main(): Promise<void> {
  const flags = flagsOrHelp(
    FLAGS,
    'Measures Skein compared with llama-server with pictures and random weights.',
  );
  if (flags === null) return;
  const model = new ShapeFile(flags);
  const reports = [{ of: picturesReport, document: 'docs/lab/comparisons.md', section: 'pictures' }];
  try {
    await runComparison(flags, { plan: () => planOf(flags, model), reports });
  } finally {
    model.remove();
  }
}

function planOf(flags: FlagValues<typeof FLAGS>, model: ShapeFile): ComparisonPlan<PicturesColumn> {
  const [threads, users, texts] = [
    countOf('threads', flags.threads),
    countOf('users', flags.users),
    countOf('texts', flags.texts),
  ];
  const [side, pictures] = [countOf('side', flags.side), countOf('pictures', flags.pictures)];
  model.write();
  const types = listOf(flags.towers) as TowerType[];
  const towers = types.map((type) => {
    const file = join(model.folder, `mmproj-${type}.gguf`);
    writeRandomMmproj(file, model.shape, type);
    return { type, file };
  });
  // Where no tower lies next to it.
  const blindPath = join(model.folder, 'blind', 'model.gguf');
  mkdirSync(dirname(blindPath), { recursive: true });
  linkSync(model.path, blindPath);
  const slots = Math.max(users, texts + 1);
  let round = 0;
  const measure = async (server: SeeingServer, column: PicturesColumn, sees: boolean): Promise<Values> => {
    const seed = round++;
    if (column === 'plain') {
      const plain = await textsAlone(server, { users: texts, aloneMs: ALONE_MS, seed, sees });
      return { tokens: plain.tokensPerSecond, gap: plain.longestGapMs };
    }
    if (column === 'users') return { picturesPerSecond: await picturesPerSecond(server, users, seed) };
    if (column === 'second') return { ...(await firstAndSecond(server, seed)) };
    const { alone, beside } = await textsBeside(server, { users: texts, aloneMs: ALONE_MS, pictures, seed });
    return {
      alone: alone.tokensPerSecond,
      beside: beside.tokensPerSecond,
      lostPercent: 100 * (1 - beside.tokensPerSecond / alone.tokensPerSecond),
      gapAlone: alone.longestGapMs,
      gapBeside: beside.longestGapMs,
    };
  };
  const measured = (start: Parameters<typeof withServer>[0], column: PicturesColumn, sees = true) =>
    withServer(start, ({ url, model: name }) => measure({ url, model: name, side }, column, sees));
  const peers = towers.map(
    ({ type, file }): Candidate<PicturesColumn> => ({
      engine: LLAMA_SERVER,
      format: type,
      open: () => {
        const peer = new LlamaCpp(flags.peers);
        const serve = (port: number) =>
          peer.serve(model.path, model.type, port, threads, slots, SEQUENCE_TOKENS, file);
        return {
          ...{ name: `${LLAMA_SERVER} ${type}`, engine: LLAMA_SERVER, format: type },
          bytes: statSync(model.path).size + statSync(file).size,
          version: peer.version(),
          // Types of the tower differ in how fast pictures are seen.
          measures: (column) => column === 'users' || (column !== 'plain' && type === types[0]),
          measure: (column) => measured(serve, column),
        };
      },
    }),
  );
  const tower = towers[0]!;
  const serve = (port: number, path = model.path, seeing = ['--mmproj', tower.file]) => {
    const args = ['--model', path, ...seeing, '--cache-dir', model.cache, '--port', `${port}`];
    args.push('--threads', `${threads}`, '--max-active-requests', `${slots}`);
    return spawnSkein([...args, '--max-context-tokens', `${SEQUENCE_TOKENS}`]);
  };
  const skeinOf = (format: string, sees: boolean): Candidate<PicturesColumn> => ({
    engine: 'skein',
    format,
    open: () => ({
      ...{ name: `skein ${format}`, engine: 'skein', format },
      bytes: statSync(model.path).size + (sees ? statSync(tower.file).size : 0),
      version: skeinDigest(),
      measures: (column) => sees || column === 'plain',
      measure: (column) =>
        measured((port) => (sees ? serve(port) : serve(port, blindPath, [])), column, sees),
    }),
  });
  return {
    candidates: [skeinOf(tower.type, true), skeinOf('no tower', false), ...peers],
    columns: COLUMNS.map((name) => ({ name, shape: name })),
    settings: { model: model.name, threads, users, side, texts, pictures },
  };
}

await main();
