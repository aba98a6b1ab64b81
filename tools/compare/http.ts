/**
 * `skein serve` and llama-server side by side: streaming chat clients in a closed loop, taking turns. See --help.
 *
 *     npm run bench:http -- --model DIR_OR_GGUF
 */
import { basename } from 'node:path';
import { writeSection } from '../document-section.js';
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
import { httpReport } from './http-report.js';
import { llamaServerSide, type ServerShape, skeinServerSide } from './http-sides.js';
import { ggufOf, LlamaCpp } from './llama-cpp.js';
import { describeMachine } from './machine.js';
import { ComparisonRecord } from './record.js';
import { type Candidate, selectOnly } from './side.js';
import { takeTurns } from './take-turns.js';

const FLAGS = {
  ...SIDES_FLAGS,
  weights: { argument: 'LIST', default: 'bf16,int8,int4', help: "Skein's formats (default bf16,int8,int4)" },
  types: {
    argument: 'LIST',
    default: 'Q8_0,Q4_1',
    help: "llama.cpp's weight types (default Q8_0,Q4_1; none: leave it out)",
  },
  clients: { argument: 'LIST', default: '1,8,32,64,128', help: 'clients at once (default 1,8,32,64,128)' },
  requests: { argument: 'N', default: '2', help: 'requests of each client, at least (default 2)' },
  'requests-min': {
    argument: 'N',
    default: '16',
    help: 'requests of all clients together, at least (default 16)',
  },
  words: { argument: 'N', default: '100', help: 'words of a prompt (default 100)' },
  generate: { argument: 'N', default: '64', help: 'tokens of an answer (default 64)' },
  'keep-alive': {
    help: 'keep connections between requests; default: a new one for each, as llama-server ends its own',
  },
  ...TURNS_FLAGS,
  ...outputFlag('bench-results/http.json'),
} as const satisfies FlagTable;

async function main(): Promise<void> {
  if (process.argv.includes('--help')) {
    console.log(
      'Streams chat from skein serve and llama-server on this machine: Markdown tables of medians and ratios.\n',
    );
    console.log(describeFlags(FLAGS));
    return;
  }
  const flags = readFlags(FLAGS);
  const record = flags.report ? ComparisonRecord.read(flags.output) : await measure(flags);
  const report = httpReport(record);
  console.log(report);
  if (flags.write) writeSection('BENCHMARKS.md', 'http', report);
}

async function measure(flags: FlagValues<typeof FLAGS>): Promise<ComparisonRecord> {
  if (flags.model === '') throw new Error('Which model? Give --model PATH or set SKEIN_TEST_MODEL.');
  const [least, leastOfAll] = [
    countOf('requests', flags.requests),
    countOf('requests-min', flags['requests-min']),
  ];
  const columns = listOf(flags.clients).map((text) => {
    const clients = countOf('clients', text);
    return {
      name: `c${clients}`,
      shape: { clients, requests: Math.max(least, Math.ceil(leastOfAll / clients)) },
    };
  });
  const chosen = selectOnly(listOf(flags.only), candidates(flags), columns);
  const sides = [];
  for (const candidate of chosen.sides) sides.push(await candidate.open());

  const { threads, requests, words, generate } = flags;
  const settings = {
    model: basename(flags.model),
    threads,
    requests,
    'requests-min': flags['requests-min'],
    words,
    generate,
    connections: flags['keep-alive'] ? 'kept' : 'one for each request',
  };
  const conditions = { machine: describeMachine(), settings };
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

function candidates(flags: FlagValues<typeof FLAGS>): Candidate<ServerShape>[] {
  const load = {
    threads: countOf('threads', flags.threads),
    promptWords: countOf('words', flags.words),
    generate: countOf('generate', flags.generate),
    keepAlive: flags['keep-alive'],
  };
  const gguf = ggufOf(flags.model);
  let peer: LlamaCpp | undefined;
  const llama = () => {
    peer ??= new LlamaCpp(flags.peers);
    return peer;
  };
  return [
    ...listOf(flags.types).map((format) => ({
      engine: 'llama-server',
      format,
      open: () => llamaServerSide(llama(), gguf, format, load),
    })),
    ...listOf(flags.weights).map((format) => ({
      engine: 'skein',
      format,
      open: () => skeinServerSide(flags.model, format, load),
    })),
  ];
}

await main();
