/**
 * What guides cost an iteration of 64 generating sequences.
 *
 *     npm run build:ts && npx tsx tools/guided-bench/main.ts --model DIR_OR_GGUF            prints the table
 *     npm run build:ts && npx tsx tools/guided-bench/main.ts --model DIR_OR_GGUF --write    writes it into BENCHMARKS.md
 */
import { basename, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { describeMachine, machineLine } from '../../base/machine.js';
import { writeSection } from '../document-section.js';
import { median } from '../support/statistics.js';

const SEQUENCES = 64;
const { values: flags } = parseArgs({
  options: {
    model: { type: 'string' },
    weights: { type: 'string', default: 'bf16' },
    tokens: { type: 'string', default: '96' },
    rounds: { type: 'string', default: '3' },
    write: { type: 'boolean', default: false },
  },
});
if (flags.model === undefined) throw new Error('Name a model with --model DIR_OR_GGUF.');

/** A list that no answer comes to the end of. */
function schema(property: string): object {
  const properties = { [property]: { type: 'string' }, score: { type: 'integer' } };
  const items = { type: 'object', properties, required: [property, 'score'], additionalProperties: false };
  return { type: 'array', items, minItems: 1000 };
}

type SchemaOf = (sequence: number, round: number) => object | undefined;
const CASES: readonly { name: string; schemaOf: SchemaOf }[] = [
  { name: 'no guide', schemaOf: () => undefined },
  { name: 'one sequence of 64 guided', schemaOf: (i) => (i === 0 ? schema('title') : undefined) },
  { name: 'all by the same schema', schemaOf: () => schema('title') },
  {
    name: 'each by a schema of its own, never seen before',
    schemaOf: (i, round) => schema(`r${round}s${i}`),
  },
];

// The compiled package: the worker's thread runs JavaScript.
const { Skein } = (await import(
  new URL('../../dist/src/index.js', import.meta.url).href
)) as typeof import('skein');
const skein = await Skein.load({
  model: flags.model,
  weights: flags.weights as 'bf16',
  maxNumSequences: SEQUENCES,
  maxTokens: SEQUENCES * 512,
});
const times = CASES.map((): number[] => []);
let current: number[] = [];
skein.onStats(({ contextTokens, generationRequests, iterationMs }) => {
  if (contextTokens === 0 && generationRequests === SEQUENCES) current.push(iterationMs);
});
for (let round = -1; round < Number(flags.rounds); round++) {
  for (const [index, { schemaOf }] of CASES.entries()) {
    current = [];
    const maxTokens = Number(flags.tokens);
    await Promise.all(
      Array.from({ length: SEQUENCES }, (_, i) => {
        const json = schemaOf(i, round);
        const guide = json === undefined ? { ignoreEos: true } : { guided: { json } };
        return skein.complete({ prompt: 'A list of books as JSON:', ...guide, seed: i, maxTokens });
      }),
    );
    if (round >= 0) times[index]!.push(...current); // the first round warms everything
  }
}
const { instructionSet, threads } = skein.info;
await skein.close();

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
const [plain] = times;
const share = (value: number, base: number) =>
  `${value >= base ? '+' : ''}${((value / base - 1) * 100).toFixed(1)} %`;
const rows = CASES.map(({ name }, i) => {
  const [average, middle] = [mean(times[i]!), median(times[i]!)];
  const cells = [
    `${average.toFixed(1)} ms (${share(average, mean(plain!))})`,
    `${middle.toFixed(1)} ms (${share(middle, median(plain!))})`,
  ];
  return `| ${name} | ${cells.join(' | ')} |`;
});
const report = [
  `${machineLine(describeMachine())}; ${instructionSet}, ${threads} threads; ${basename(resolve(flags.model))}, ${flags.weights} weights.`,
  '',
  '|  | mean | median |',
  '| --- | ---: | ---: |',
  ...rows,
].join('\n');
console.log(report);
if (flags.write) writeSection('BENCHMARKS.md', 'guided', report);
