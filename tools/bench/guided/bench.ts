import { basename, resolve } from 'node:path';
import { countOf } from '../../compare/flags.js';
import { markdownTable } from '../../support/markdown-table.js';
import { median } from '../../support/statistics.js';
import { defineBench } from '../bench.js';
import { compiled } from '../compiled.js';
import { MODEL_FLAG, modelOf, roundsFlag } from '../flags.js';

const SEQUENCES = 64;
const FLAGS = {
  ...MODEL_FLAG,
  weights: { argument: 'TYPE', default: 'bf16', help: 'f32, bf16, int8 or int4 (default bf16)' },
  tokens: { argument: 'N', default: '96', help: 'tokens of each answer (default 96)' },
  ...roundsFlag(3),
} as const;

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

interface Measured {
  /** Milliseconds of each iteration of 64 generating sequences, by case. */
  times: number[][];
  instructionSet: string;
  threads: number;
}

async function measure(model: string, weights: string, maxTokens: number, rounds: number): Promise<Measured> {
  const { Skein } = await compiled<typeof import('skein')>('src/index.js');
  const skein = await Skein.load({
    model,
    weights: weights as 'bf16',
    maxActiveRequests: SEQUENCES,
    kvCacheTokens: SEQUENCES * 512,
  });
  const times = CASES.map((): number[] => []);
  let current: number[] = [];
  skein.onStats(({ contextTokens, generationRequests, iterationMs }) => {
    if (contextTokens === 0 && generationRequests === SEQUENCES) current.push(iterationMs);
  });
  for (let round = -1; round < rounds; round++) {
    for (const [index, { schemaOf }] of CASES.entries()) {
      current = [];
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
  return { times, instructionSet, threads };
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

function table(times: readonly number[][]): string {
  const share = (value: number, base: number) =>
    `${value >= base ? '+' : ''}${((value / base - 1) * 100).toFixed(1)} %`;
  const rows = CASES.map(({ name }, i) => {
    const cells = [mean, median].map((of) => {
      const [value, plain] = [of(times[i]!), of(times[0]!)];
      return `${value.toFixed(1)} ms (${share(value, plain)})`;
    });
    return [name, ...cells];
  });
  return markdownTable(['', 'mean', 'median'], rows);
}

/** Cost of guides to an iteration of 64 generating sequences. */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/sampling.md',
  sections: ['guided'],
  async run(flags, { report }) {
    const model = modelOf(flags);
    const [tokens, rounds] = [countOf('tokens', flags.tokens), countOf('rounds', flags.rounds)];
    const { times, instructionSet, threads } = await measure(model, flags.weights, tokens, rounds);
    report({
      section: 'guided',
      conditions: `${instructionSet}, ${threads} threads; ${basename(resolve(model))}, ${flags.weights} weights`,
      lines: [table(times)],
    });
  },
});
