/**
 * Skein, llama.cpp and ik_llama.cpp with a larger model whose weights are random: nothing is downloaded. See --help.
 *
 *     npm run bench:compare -- --shape llama-1b
 */
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
import type { ComparisonRecord } from '../record.js';
import { type ComparisonPlan, runComparison } from '../run-comparison.js';
import { parseShapes, type Shape, shapeName } from '../shapes.js';
import type { Candidate, Named } from '../side.js';
import { IK_LLAMA, LLAMA } from '../tables.js';
import { SHAPE_FLAGS, ShapeFile } from './shape-file.js';
import { STARTS, shapesReport } from './shape-report.js';
import { peerCandidate, type ShapeColumn, skeinCandidate } from './shape-sides.js';

/** Generation of 1 to 32 sequences, and prompts of 128 to 2048 tokens. */
const COLUMNS = '1x128+32,8x128+32,16x128+32,32x128+32,1x512+8,1x1024+8,1x2048+8';

const { model: _, ...PLACES } = SIDES_FLAGS;
const FLAGS = {
  ...SHAPE_FLAGS,
  columns: {
    argument: 'LIST',
    default: COLUMNS,
    help: 'SEQUENCESxPROMPT+GENERATED (default: 1 to 32 sequences, prompts of 128 to 2048)',
  },
  'without-starts': { help: 'leave out the starts of the servers' },
  runs: {
    argument: 'N',
    default: '2',
    help: 'runs of one sequence in a measurement, of which the first does not count (default 2)',
  },
  ...PLACES,
  ...TURNS_FLAGS,
  output: {
    argument: 'FILE',
    help: 'the measurements as JSON (default bench-results/shape-NAME.TYPE.json; the tables are those of all next to it)',
  },
} as const satisfies FlagTable;

async function main(): Promise<void> {
  const flags = flagsOrHelp(
    FLAGS,
    'Measures Skein compared with llama.cpp and ik_llama.cpp with random weights.',
  );
  if (flags === null) return;
  const model = new ShapeFile(flags);
  const output = flags.output || join('bench-results', `shape-${model.name}.json`);
  const of = (record: ComparisonRecord) => shapesReport(dirname(output), record);
  const reports = [{ of, document: 'docs/lab/comparisons.md', section: 'shapes' }];
  try {
    await runComparison({ ...flags, output }, { plan: () => planOf(flags, model), reports });
  } finally {
    model.remove();
  }
}

function planOf(flags: FlagValues<typeof FLAGS>, model: ShapeFile): ComparisonPlan<ShapeColumn> {
  const threads = countOf('threads', flags.threads);
  const runs = countOf('runs', flags.runs);
  const rates = parseShapes(listOf(flags.columns), '--columns').map(
    (column): Named<ShapeColumn> => ({ name: shapeName(column), shape: withRuns(column, runs) }),
  );
  model.write();
  const shown = { file: model.path, type: model.type, threads };
  const candidates: Candidate<ShapeColumn>[] = [
    peerCandidate(LLAMA, () => new LlamaCpp(flags.peers), shown),
    peerCandidate(IK_LLAMA, () => new IkLlamaCpp(flags.peers), shown),
    skeinCandidate(model.cache, shown),
  ];
  const starts: Named<ShapeColumn>[] = flags['without-starts'] ? [] : [{ name: STARTS, shape: STARTS }];
  return {
    candidates,
    columns: [...starts, ...rates],
    settings: { model: model.name, threads, runs },
  };
}

/** Several sequences compute many prompts for one measurement, and are run once. */
const withRuns = (shape: Shape, runs: number): Shape => ({
  ...shape,
  runs: shape.sequences === 1 ? runs : 1,
});

await main();
