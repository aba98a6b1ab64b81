import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { countOf, type FlagValues, listOf, SIDES_FLAGS } from '../../compare/flags.js';
import { FILE_TYPES, fileTypeOf, modelShapeOf } from '../../compare/shape/model-shapes.js';
import { writeRandomGguf } from '../../compare/shape/random-gguf.js';
import { markdownTable } from '../../support/markdown-table.js';
import { median } from '../../support/statistics.js';
import { takeRounds } from '../../support/take-rounds.js';
import { type BenchOutput, defineBench } from '../bench.js';
import { roundsFlag, THREADS_FLAG } from '../flags.js';
import { chooseTable, loadKernels, wallSeconds } from '../kernel/hooks.js';
import { MATRIX_FORMS, type MatrixFormName } from './matrix-forms.js';
import { writeRandomSafetensors } from './random-safetensors.js';
import { cacheIn, type FormRun, runLlama, runSkein, SEQUENCES } from './sides.js';

const NO_PANELS = '--no-panels';
const ALL = [
  ...Object.keys(MATRIX_FORMS),
  ...FILE_TYPES,
  ...['Q4_0', 'Q4_K_M', 'Q8_0', 'IQ4_XS', 'BF16'].map((type) => `${type}${NO_PANELS}`),
];

const FLAGS = {
  shape: {
    argument: 'NAME',
    default: 'llama-1b',
    help: 'a shape of npm run bench:compare -- --shape (default llama-1b)',
  },
  forms: { argument: 'LIST', default: ALL.join(','), help: `forms of weights (default ${ALL.join(',')})` },
  'llama-types': {
    argument: 'LIST',
    default: FILE_TYPES.join(','),
    help: 'types of llama.cpp that Skein is compared with (default: all of the forms; none: leave it out)',
  },
  peers: SIDES_FLAGS.peers,
  folder: {
    argument: 'DIR',
    default: tmpdir(),
    help: 'where 20 GB of models are written, and removed at the end',
  },
  ...THREADS_FLAG,
  ...roundsFlag(3),
} as const;
type Flags = FlagValues<typeof FLAGS>;

/** A side: a file, and who computes with it. */
interface FormSide {
  name: string;
  bytes: number;
  isLlama: boolean;
  run(): Promise<FormRun> | FormRun;
  runs: FormRun[];
}

/**
 * First start and generation of each form of weights with random weights, compared with llama.cpp's file of
 * the nearest size.
 */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/forms.md',
  sections: ['forms'],
  async run(flags, output) {
    const folder = mkdtempSync(join(flags.folder, 'skein-forms-'));
    const remove = () => rmSync(folder, { recursive: true, force: true });
    process.once('exit', remove);
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
    try {
      await compare(flags, folder, output);
    } finally {
      remove();
    }
  },
});

async function compare(flags: Flags, folder: string, { progress, report }: BenchOutput): Promise<void> {
  const threads = countOf('threads', flags.threads);
  const sides = [
    ...listOf(flags['llama-types']).map((type) => llamaSide(flags, folder, type, threads)),
    ...listOf(flags.forms).map((form) => skeinSide(flags, folder, form, threads)),
  ];
  await takeRounds(sides, countOf('rounds', flags.rounds), async (side, round) => {
    const run = await side.run();
    side.runs.push(run);
    const rates = run.tokensPerSecond.map((rate) => rate.toFixed(1)).join(', ');
    progress(`round ${round + 1}, ${side.name}: start ${run.startSeconds.toFixed(1)} s, ${rates} tokens/s`);
  });
  const read = readingRate(threads);
  const rows = sides.map((side) => rowOf(side, isBeside(side, sides), read));
  report({
    section: 'forms',
    conditions: `${threads} threads, random weights of the shape ${flags.shape}, 64 tokens in the cache, medians of ${flags.rounds} rounds in turn; plain reading by all threads ${(read / 1e9).toFixed(1)} GB/s`,
    lines: [markdownTable([...TITLES], rows)],
  });
}

const TITLES = [
  'weights',
  'file, MB',
  'first start, s',
  ...SEQUENCES.map((count) => `${count} sequence${count === 1 ? '' : 's'}, tokens/s`),
  'of plain reading',
  "llama.cpp's",
  ...['start', ...SEQUENCES.map(String)].map((what) => `times as fast: ${what}`),
];

/** The side of llama.cpp whose file is nearest in size. */
function isBeside(side: FormSide, sides: readonly FormSide[]): FormSide | null {
  const peers = side.isLlama ? [] : sides.filter(({ isLlama }) => isLlama);
  const far = (peer: FormSide) => Math.abs(Math.log(peer.bytes / side.bytes));
  return peers.sort((a, b) => far(a) - far(b))[0] ?? null;
}

function rowOf(side: FormSide, peer: FormSide | null, read: number): string[] {
  const of = (one: FormSide, value: (run: FormRun) => number) => median(one.runs.map(value));
  const values = [
    (run: FormRun) => 1 / run.startSeconds,
    ...SEQUENCES.map((_, i) => (run: FormRun) => run.tokensPerSecond[i]!),
  ];
  const ratio = (value: (run: FormRun) => number) =>
    peer === null ? '' : median(side.runs.map((run, i) => value(run) / value(peer.runs[i]!))).toFixed(2);
  const { weightBytes } = side.runs[0]!;
  const share = ((weightBytes ?? side.bytes) * of(side, values[1]!)) / read;
  return [
    side.name,
    (side.bytes / 1e6).toFixed(0),
    of(side, (run) => run.startSeconds).toFixed(1),
    ...SEQUENCES.map((_, i) => of(side, values[1 + i]!).toFixed(1)),
    `${(100 * share).toFixed(0)} %`,
    peer === null ? '' : peer.name.replace('llama.cpp ', ''),
    ...values.map(ratio),
  ];
}

function skeinSide(flags: Flags, folder: string, form: string, threads: number): FormSide {
  const panels = !form.endsWith(NO_PANELS);
  const type = panels ? form : form.slice(0, -NO_PANELS.length);
  const [path, bytes] =
    type in MATRIX_FORMS ? safetensorsOf(flags, folder, type) : ggufOf(flags, folder, type);
  const kind = type in MATRIX_FORMS ? 'safetensors' : 'GGUF';
  return {
    name: `skein, ${kind} ${type}${panels ? '' : ` ${NO_PANELS}`}`,
    bytes,
    isLlama: false,
    run: () => runSkein(path, cacheIn(folder), panels, threads),
    runs: [],
  };
}

function llamaSide(flags: Flags, folder: string, type: string, threads: number): FormSide {
  const [path, bytes] = ggufOf(flags, folder, type);
  const run = () => runLlama(flags.peers, path, type, threads);
  return { name: `llama.cpp ${type}`, bytes, isLlama: true, run, runs: [] };
}

function safetensorsOf(flags: Flags, folder: string, form: string): [string, number] {
  const path = join(folder, form);
  const bytes = writeRandomSafetensors(path, modelShapeOf(flags.shape), MATRIX_FORMS[form as MatrixFormName]);
  return [path, bytes];
}

function ggufOf(flags: Flags, folder: string, type: string): [string, number] {
  const path = join(folder, `${flags.shape}.${type}.gguf`);
  if (existsSync(path)) return [path, statSync(path).size];
  return [path, writeRandomGguf(path, modelShapeOf(flags.shape), fileTypeOf(type))];
}

/** Bytes a second that all threads read from memory. */
function readingRate(threads: number): number {
  const kernels = loadKernels();
  const isa = chooseTable(kernels, '');
  const data = new Uint8Array(512 * 2 ** 20).fill(1);
  const runs = [0, 1024, 4096].map(
    (ahead) => () => kernels.read(isa, { data, bytes: data.length, ahead, threads }),
  );
  return data.length / Math.min(...wallSeconds(runs));
}
