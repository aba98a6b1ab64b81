/**
 * Skein, llama.cpp and ik_llama.cpp with a larger model whose weights are random: nothing is downloaded. See --help.
 *
 *     npm run bench:compare -- --shape llama-1b
 */
import { rmSync } from 'node:fs';
import { tmpdir, totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import {
  countOf,
  type FlagTable,
  type FlagValues,
  flagsOrHelp,
  listOf,
  SIDES_FLAGS,
  TURNS_FLAGS,
} from '../flags.js';
import { IkLlamaCpp } from '../ik-llama-cpp.js';
import { LlamaCpp } from '../llama-cpp.js';
import { IK_LLAMA, LLAMA } from '../names.js';
import type { ComparisonRecord } from '../record.js';
import { type ComparisonPlan, runComparison } from '../run-comparison.js';
import { parseShapes, type Shape, shapeName } from '../shapes.js';
import type { Candidate, Named } from '../side.js';
import {
  FILE_TYPES,
  type FileType,
  fileTypeOf,
  MODEL_SHAPES,
  type ModelShape,
  modelShapeOf,
  plannedTensors,
  weightBytes,
} from './model-shapes.js';
import { checkRoom, writeRandomGguf } from './random-gguf.js';
import { STARTS, shapesReport } from './shape-report.js';
import { peerCandidate, type ShapeColumn, skeinCandidate } from './shape-sides.js';

const { model: _, ...PLACES } = SIDES_FLAGS;
/** Generation of 1 to 32 sequences, and prompts of 128 to 2048 tokens. */
const COLUMNS = '1x128+32,8x128+32,16x128+32,32x128+32,1x512+8,1x1024+8,1x2048+8';
/** Copies of the file that Skein keeps beside it: the weights of its engine, and the same in the layout of the machine's kernels. */
const KEPT_COPIES = 2;
/** Share of the memory that a model may take: the rest is the system's, the cache's and this program's. */
const MEMORY_SHARE = 0.9;

const FLAGS = {
  shape: {
    argument: 'NAME',
    help: `sizes of the model: ${MODEL_SHAPES.map(({ name }) => name).join(', ')}`,
  },
  type: {
    argument: 'TYPE',
    default: 'Q4_K_M',
    help: `types of its weights: ${FILE_TYPES.join(', ')} (default Q4_K_M)`,
  },
  folder: {
    argument: 'DIR',
    default: tmpdir(),
    help: "folder for the file and Skein's engine, both removed at the end (default: the system's temporary one)",
  },
  columns: {
    argument: 'LIST',
    default: COLUMNS,
    help: 'SEQUENCESxPROMPT+GENERATED (default: 1 to 32 sequences, prompts of 128 to 2048)',
  },
  'without-starts': { help: 'leave out the starts, for which llama-server is built, too' },
  runs: {
    argument: 'N',
    default: '2',
    help: 'runs of one measurement, of which the first does not count (default 2)',
  },
  ...PLACES,
  ...TURNS_FLAGS,
  output: {
    argument: 'FILE',
    help: 'the measurements as JSON (default bench-results/shape-NAME.TYPE.json; the tables are those of all beside it)',
  },
} as const satisfies FlagTable;

/** The file and the engine of this run. */
const placeOf = (folder: string) => join(folder, `skein-shape-${process.pid}`);

async function main(): Promise<void> {
  const flags = flagsOrHelp(FLAGS, 'Measures Skein beside llama.cpp and ik_llama.cpp with random weights.');
  if (flags === null) return;
  const [shape, type] = [modelShapeOf(flags.shape), fileTypeOf(flags.type)];
  const output = flags.output || join('bench-results', `shape-${shape.name}.${type}.json`);
  const of = (record: ComparisonRecord) => shapesReport(dirname(output), record);
  const reports = [{ of, document: 'docs/lab/comparisons.md', section: 'shapes' }];
  try {
    await runComparison({ ...flags, output }, { plan: () => planOf(flags, shape, type), reports });
  } finally {
    rmSync(placeOf(flags.folder), { recursive: true, force: true });
  }
}

function planOf(
  flags: FlagValues<typeof FLAGS>,
  shape: ModelShape,
  type: FileType,
): ComparisonPlan<ShapeColumn> {
  const threads = countOf('threads', flags.threads);
  const runs = countOf('runs', flags.runs);
  const place = placeOf(flags.folder);
  const file = join(place, `${shape.name}.${type}.gguf`);
  const bytes = weightBytes(plannedTensors(shape, type));
  checkMemory(`${shape.name} as ${type}`, bytes);
  const hasSkein = shape.experts === undefined;
  checkRoom(flags.folder, `${shape.name} as ${type}`, bytes * (hasSkein ? 1 + KEPT_COPIES : 1));
  if (!hasSkein)
    console.error(`${shape.name} is a mixture of experts, which Skein does not run: its side is left out`);
  console.error(`writing ${file}: ${(bytes / 1e9).toFixed(1)} GB`);
  writeRandomGguf(file, shape, type);
  const model = { file, type, threads };
  const candidates: Candidate<ShapeColumn>[] = [
    peerCandidate(LLAMA, () => new LlamaCpp(flags.peers), model),
    peerCandidate(IK_LLAMA, () => new IkLlamaCpp(flags.peers), model),
  ];
  if (hasSkein) candidates.push(skeinCandidate(join(place, 'cache'), model));
  const rates = parseShapes(listOf(flags.columns)).map(
    (column): Named<ShapeColumn> => ({ name: shapeName(column), shape: withRuns(column, runs) }),
  );
  const starts: Named<ShapeColumn>[] = flags['without-starts'] ? [] : [{ name: STARTS, shape: STARTS }];
  return {
    candidates,
    columns: [...starts, ...rates],
    settings: { model: `${shape.name}.${type}`, threads, runs },
  };
}

/** Several sequences compute many prompts for one measurement, and are run once. */
const withRuns = (shape: Shape, runs: number): Shape => ({
  ...shape,
  runs: shape.sequences === 1 ? runs : 1,
});

/** @throws where the machine has not enough memory for a model, and says how much it would take. */
function checkMemory(what: string, bytes: number): void {
  if (bytes <= MEMORY_SHARE * totalmem()) return;
  const size = (count: number) => `${(count / 1e9).toFixed(1)} GB`;
  throw new Error(`${what} takes ${size(bytes)} of memory, and this machine has ${size(totalmem())} in all.`);
}

await main();
