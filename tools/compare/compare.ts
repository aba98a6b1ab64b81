/**
 * Skein beside llama.cpp and OpenVINO GenAI: the same model, shapes, threads and run, taking turns. See --help.
 *
 *     npm run bench:compare -- --model DIR_OR_GGUF
 */
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import type { WeightPrecision } from '../../engine/executor.js';
import { writeSection } from '../document-section.js';
import { comparisonReport } from './comparison-report.js';
import {
  countOf,
  describeFlags,
  type FlagTable,
  type FlagValues,
  listOf,
  outputFlag,
  readFlags,
  SIDES_FLAGS,
  TURNS_FLAGS,
} from './flags.js';
import { ggufOf, LLAMA_TYPES, LlamaCpp } from './llama-cpp.js';
import { describeMachine } from './machine.js';
import { OPENVINO_FORMATS, OpenVino } from './openvino.js';
import { peerSides } from './peer.js';
import { ComparisonRecord } from './record.js';
import { hasCopiedContexts, parseShapes, type Shape, shapeName } from './shapes.js';
import { type Candidate, selectOnly } from './side.js';
import { PRECISIONS, skeinSide } from './skein.js';
import { takeTurns } from './take-turns.js';

const SHAPES = '1x128+128,8x128+64,32x128+32,64x128+32,1x1024+64,64x2048+16,1x8128+64';

const FLAGS = {
  ...SIDES_FLAGS,
  weights: {
    argument: 'LIST',
    default: PRECISIONS.join(','),
    help: `Skein's formats (default ${PRECISIONS.join(',')})`,
  },
  types: {
    argument: 'LIST',
    default: LLAMA_TYPES.join(','),
    help: `llama.cpp's weight types (default ${LLAMA_TYPES.join(',')}; none: leave it out)`,
  },
  openvino: {
    argument: 'LIST',
    default: OPENVINO_FORMATS.join(','),
    help: `OpenVINO's weight formats (default ${OPENVINO_FORMATS.join(',')}; none: leave it out)`,
  },
  shapes: {
    argument: 'LIST',
    default: SHAPES,
    help: 'SEQUENCESxPROMPT+GENERATED (default: those of BENCHMARKS.md)',
  },
  'openvino-long': {
    help: 'OpenVINO too where the others copy one context to all sequences: it computes each, for minutes',
  },
  'flash-off-max': {
    argument: 'N',
    default: '4096',
    help: 'longest prompt that llama.cpp runs without flash attention too (default 4096: 8k takes it minutes)',
  },
  ...TURNS_FLAGS,
  ...outputFlag('bench-results/compare.json'),
} as const satisfies FlagTable;

/** Engines are built here and removed at the end. */
const ENGINES = join(tmpdir(), `skein-compare-${process.pid}`);

async function main(): Promise<void> {
  if (process.argv.includes('--help')) {
    console.log(
      'Measures Skein beside llama.cpp and OpenVINO GenAI on this machine, as Markdown tables of medians and ratios.\n',
    );
    console.log(describeFlags(FLAGS));
    return;
  }
  const flags = readFlags(FLAGS);
  const record = flags.report ? ComparisonRecord.read(flags.output) : await measure(flags);
  const report = comparisonReport(record);
  console.log(report);
  if (flags.write) writeSection('BENCHMARKS.md', 'compare', report);
}

async function measure(flags: FlagValues<typeof FLAGS>): Promise<ComparisonRecord> {
  if (flags.model === '') throw new Error('Which model? Give --model PATH or set SKEIN_TEST_MODEL.');
  const model = ggufOf(flags.model);
  const threads = countOf('threads', flags.threads);
  const shapes = parseShapes(listOf(flags.shapes)).map((shape) => ({ name: shapeName(shape), shape }));
  const chosen = selectOnly(listOf(flags.only), candidates(flags, model, threads), shapes);
  const sides = [];
  for (const candidate of chosen.sides) sides.push(await candidate.open());

  const conditions = { machine: describeMachine(), settings: { model: basename(model), threads } };
  const record = (flags.resume ? ComparisonRecord.resume : ComparisonRecord.start)(flags.output, conditions);
  await takeTurns(
    {
      sides,
      columns: chosen.columns,
      rounds: countOf('rounds', flags.rounds),
      minutes: countOf('minutes', flags.minutes, 0),
      log: (line) => console.error(line),
    },
    record,
  );
  return record;
}

function candidates(flags: FlagValues<typeof FLAGS>, model: string, threads: number): Candidate<Shape>[] {
  const withLong = (shape: Shape) => flags['openvino-long'] || !hasCopiedContexts(shape);
  const options = { model, threads, measures: () => true };
  const flashOffMax = countOf('flash-off-max', flags['flash-off-max'], 0);
  const openLlama = () => new LlamaCpp(flags.peers, flashOffMax);
  const llama = peerSides('llama.cpp', listOf(flags.types), openLlama, options);
  const openvino = peerSides('openvino', listOf(flags.openvino), () => new OpenVino(flags.peers), {
    ...options,
    measures: withLong,
  });
  const ours = listOf(flags.weights).map((format) => ({
    engine: 'skein',
    format,
    open: () => skeinSide(ENGINES, model, format as WeightPrecision, threads),
  }));
  return [...llama, ...openvino, ...ours];
}

try {
  await main();
} finally {
  rmSync(ENGINES, { recursive: true, force: true });
}
