/**
 * Skein compared with llama.cpp, ik_llama.cpp and OpenVINO GenAI: the same model, shapes, threads and run,
 * taking turns. See --help.
 *
 *     npm run bench:compare -- --model DIR_OR_GGUF
 *     npm run bench:compare -- --shape llama-8b             larger models with random weights (shape/compare-shape.ts)
 *     npm run bench:compare -- http --model DIR_OR_GGUF     the servers under load (http.ts)
 *     npm run bench:compare -- pictures                     the servers of a model that sees (pictures.ts)
 *     npm run bench:compare -- agents                       the servers under many agents with long histories (agents.ts)
 */
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { comparisonReport } from './comparison-report.js';
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
import { IK_TYPES, IkLlamaCpp } from './ik-llama-cpp.js';
import { ggufOf, LLAMA_TYPES, LlamaCpp } from './llama-cpp.js';
import { OPENVINO_FORMATS, OpenVino } from './openvino.js';
import { peerSides } from './peer.js';
import { type ComparisonPlan, runComparison } from './run-comparison.js';
import { hasCopiedContexts, parseShapes, type Shape, shapeName } from './shapes.js';
import type { Candidate } from './side.js';
import { PRECISIONS, skeinSide } from './skein.js';
import { IK_LLAMA, LLAMA, OPENVINO } from './tables.js';

const SHAPES = '1x128+128,8x128+64,32x128+32,64x128+32,1x1024+64,64x2048+16,1x8128+64';

const FLAGS = {
  ...SIDES_FLAGS,
  weights: {
    argument: 'LIST',
    default: PRECISIONS.join(','),
    help: `Skein's formats (default ${PRECISIONS.join(',')}); int4@avx512bf16: with another instruction set than it chooses`,
  },
  types: {
    argument: 'LIST',
    default: LLAMA_TYPES.join(','),
    help: `llama.cpp's weight types (default ${LLAMA_TYPES.join(',')}; none: leave it out)`,
  },
  'ik-types': {
    argument: 'LIST',
    default: IK_TYPES.join(','),
    help: `ik_llama.cpp's weight types (default ${IK_TYPES.join(',')}; none: leave it out)`,
  },
  openvino: {
    argument: 'LIST',
    default: OPENVINO_FORMATS.join(','),
    help: `OpenVINO's weight formats (default ${OPENVINO_FORMATS.join(',')}; none: leave it out)`,
  },
  shapes: {
    argument: 'LIST',
    default: SHAPES,
    help: 'SEQUENCESxPROMPT+GENERATED, with an s after it where all sequences read one prompt (default: those of BENCHMARKS.md)',
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
  section: {
    argument: 'NAME',
    default: 'compare',
    help: 'what --write writes: NAME-avx2 or NAME-avx512 (default compare, of BENCHMARKS.md; compare-long: long contexts, of docs/lab/comparisons.md)',
  },
} as const satisfies FlagTable;

/** Engines are built here and removed at the end. */
const ENGINES = join(tmpdir(), `skein-compare-${process.pid}`);

async function main(): Promise<void> {
  const flags = flagsOrHelp(
    FLAGS,
    'Measures Skein compared with llama.cpp, ik_llama.cpp and OpenVINO GenAI: tables of medians and ratios. --shape NAME --help: larger models.',
  );
  if (flags === null) return;
  const document = flags.section === 'compare' ? 'BENCHMARKS.md' : 'docs/lab/comparisons.md';
  const reports = [{ of: comparisonReport, document, section: flags.section }];
  await runComparison(flags, { plan: () => planOf(flags), reports });
}

function planOf(flags: FlagValues<typeof FLAGS>): ComparisonPlan<Shape> {
  const model = ggufOf(flags.model);
  const threads = countOf('threads', flags.threads);
  return {
    candidates: candidates(flags, model, threads),
    columns: parseShapes(listOf(flags.shapes)).map((shape) => ({ name: shapeName(shape), shape })),
    settings: { model: basename(model), threads },
  };
}

function candidates(flags: FlagValues<typeof FLAGS>, model: string, threads: number): Candidate<Shape>[] {
  const withLong = (shape: Shape) => !shape.shared && (flags['openvino-long'] || !hasCopiedContexts(shape));
  const options = { model, threads, measures: () => true };
  const flashOffMax = countOf('flash-off-max', flags['flash-off-max'], 0);
  const openLlama = () => new LlamaCpp(flags.peers, flashOffMax);
  const llama = peerSides(LLAMA, listOf(flags.types), openLlama, options);
  const ik = peerSides(IK_LLAMA, listOf(flags['ik-types']), () => new IkLlamaCpp(flags.peers), options);
  const openvino = peerSides(OPENVINO, listOf(flags.openvino), () => new OpenVino(flags.peers), {
    ...options,
    measures: withLong,
  });
  const ours = listOf(flags.weights).map((format) => ({
    engine: 'skein',
    format,
    open: () => skeinSide(ENGINES, model, format, threads),
  }));
  return [...llama, ...ik, ...openvino, ...ours];
}

try {
  if (process.argv[2] === 'http') {
    process.argv.splice(2, 1);
    await import('./http.js');
  } else if (process.argv[2] === 'pictures') {
    process.argv.splice(2, 1);
    await import('./pictures.js');
  } else if (process.argv[2] === 'agents') {
    process.argv.splice(2, 1);
    await import('./agents.js');
  } else if (process.argv.some((argument) => /^--shape(=|$)/.test(argument))) {
    await import('./shape/compare-shape.js');
  } else await main();
} finally {
  rmSync(ENGINES, { recursive: true, force: true });
}
