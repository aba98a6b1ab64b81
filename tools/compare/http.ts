/**
 * `skein serve` and the servers of llama.cpp and ik_llama.cpp side by side: streaming chat clients of `skein bench` in a closed loop, taking turns. See
 * --help.
 *
 *     npm run bench:compare -- http --model DIR_OR_GGUF     (or npm run bench:http --)
 *     npm run bench:http -- --shape llama-1b                a larger model with random weights
 */
import { basename } from 'node:path';
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
import { httpReport, httpSummary } from './http-report.js';
import { peerServerSide, type ServerShape, skeinServerSide } from './http-sides.js';
import { IkLlamaCpp } from './ik-llama-cpp.js';
import { ggufOf, LlamaCpp } from './llama-cpp.js';
import type { ServingPeer } from './peer.js';
import { type ComparisonPlan, runComparison } from './run-comparison.js';
import { SHAPE_FLAGS, ShapeFile } from './shape/shape-file.js';
import type { Candidate } from './side.js';
import { IK_SERVER, LLAMA_SERVER } from './tables.js';

const FLAGS = {
  ...SIDES_FLAGS,
  ...SHAPE_FLAGS,
  weights: { argument: 'LIST', default: 'bf16,int8,int4', help: "Skein's formats (default bf16,int8,int4)" },
  types: {
    argument: 'LIST',
    default: 'Q8_0,Q4_1',
    help: "llama.cpp's weight types (default Q8_0,Q4_1; none: leave it out)",
  },
  'ik-types': {
    argument: 'LIST',
    default: 'Q8_0,Q4_1',
    help: "ik_llama.cpp's weight types (default Q8_0,Q4_1; none: leave it out)",
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
  const flags = flagsOrHelp(
    FLAGS,
    'Streams chat from skein serve and the servers of llama.cpp and ik_llama.cpp: tables of medians and ratios.',
  );
  if (flags === null) return;
  if (flags.shape !== '') return compareShape(flags);
  const reports = [
    { of: httpReport, document: 'docs/lab/comparisons.md', section: 'http' },
    { of: httpSummary, document: 'BENCHMARKS.md', section: 'http-summary' },
  ];
  await runComparison(flags, { plan: () => planOf(flags), reports });
}

/** A model with random weights is served as it is stored: no other types are made of it. */
async function compareShape(flags: FlagValues<typeof FLAGS>): Promise<void> {
  const model = new ShapeFile(flags);
  const types = { types: model.type, 'ik-types': model.type, weights: 'auto' };
  const plan = () => {
    model.write();
    // The engine of skein serve goes into the folder that is removed.
    process.env.SKEIN_CACHE_DIR = model.cache;
    return planOf({ ...flags, ...types, model: model.path });
  };
  const reports = [{ of: httpSummary, document: 'docs/lab/comparisons.md', section: 'http-shape' }];
  try {
    await runComparison(flags, { plan, reports });
  } finally {
    model.remove();
  }
}

function planOf(flags: FlagValues<typeof FLAGS>): ComparisonPlan<ServerShape> {
  const { threads, requests, words, generate } = flags;
  const [least, leastOfAll] = [countOf('requests', requests), countOf('requests-min', flags['requests-min'])];
  return {
    candidates: candidates(flags),
    columns: listOf(flags.clients).map((text) => {
      const clients = countOf('clients', text);
      const shape = { clients, requests: Math.max(least, Math.ceil(leastOfAll / clients)) };
      return { name: `c${clients}`, shape };
    }),
    settings: {
      model: basename(flags.model),
      threads,
      requests,
      'requests-min': flags['requests-min'],
      words,
      generate,
      connections: flags['keep-alive'] ? 'kept' : 'one for each request',
    },
  };
}

function candidates(flags: FlagValues<typeof FLAGS>): Candidate<ServerShape>[] {
  const load = {
    threads: countOf('threads', flags.threads),
    promptWords: countOf('words', flags.words),
    generate: countOf('generate', flags.generate),
    keepAlive: flags['keep-alive'],
  };
  const gguf = ggufOf(flags.model);
  const peerSides = (engine: string, types: string, openPeer: () => ServingPeer) => {
    let peer: ServingPeer | undefined;
    return listOf(types).map((format) => ({
      engine,
      format,
      open: () => {
        peer ??= openPeer();
        return peerServerSide(engine, peer, gguf, format, load);
      },
    }));
  };
  return [
    ...peerSides(LLAMA_SERVER, flags.types, () => new LlamaCpp(flags.peers)),
    ...peerSides(IK_SERVER, flags['ik-types'], () => new IkLlamaCpp(flags.peers)),
    ...listOf(flags.weights).map((format) => ({
      engine: 'skein',
      format,
      open: () => skeinServerSide(flags.model, format, load),
    })),
  ];
}

await main();
