/**
 * `skein serve` and llama-server under many agents at once: long histories, the same functions for all, turn after turn. See --help.
 *
 *     npm run bench:compare -- agents
 *     npm run bench:compare -- agents --server vllm=http://127.0.0.1:8001     another server, which has been started with a model of the same shape
 */
import { statSync } from 'node:fs';
import { type AgentsLoad, agentsRates } from './agents-load.js';
import { agentsReport } from './agents-report.js';
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
import { type ComparisonPlan, runComparison } from './run-comparison.js';
import { servedModel, spawnSkein, withServer } from './run-server.js';
import { SHAPE_FLAGS, ShapeFile } from './shape/shape-file.js';
import type { Candidate } from './side.js';
import { skeinDigest } from './skein.js';
import { LLAMA_SERVER } from './tables.js';

const { model: _, ...PLACES } = SIDES_FLAGS;
const FLAGS = {
  ...SHAPE_FLAGS,
  shape: { ...SHAPE_FLAGS.shape, default: 'llama-135m' },
  type: { ...SHAPE_FLAGS.type, default: 'Q8_0' },
  agents: { argument: 'N', default: '16', help: 'agents at once (default 16)' },
  turns: { argument: 'N', default: '4', help: 'turns of each after its first question (default 4)' },
  functions: { argument: 'N', default: '129', help: 'functions, which all agents have (default 129)' },
  history: {
    argument: 'N',
    default: '20000',
    help: "tokens of an agent's own history at its first question (default 20000)",
  },
  result: { argument: 'N', default: '300', help: 'tokens of what a function returns (default 300)' },
  generate: { argument: 'N', default: '48', help: 'tokens of an answer (default 48)' },
  server: {
    argument: 'LIST',
    default: '',
    help: 'NAME=URL of other servers, which are running',
  },
  ...PLACES,
  ...TURNS_FLAGS,
  rounds: { ...TURNS_FLAGS.rounds, default: '1' },
  ...outputFlag('bench-results/agents.json'),
} as const satisfies FlagTable;

/** Tokens of a function's description at most, in which a made-up model has a token for each mark; of a turn besides its words; and of all else. */
const [FUNCTION_TOKENS, TURN_TOKENS, OTHER_TOKENS] = [200, 50, 2048];

/** Tokens that the longest conversation of a load takes, in whole thousands. */
function contextOf({ historyWords, functions, turns, resultWords, generate }: Load): number {
  const ofTurns = (turns + 1) * (resultWords + generate + TURN_TOKENS);
  return Math.ceil((historyWords + functions * FUNCTION_TOKENS + ofTurns + OTHER_TOKENS) / 1024) * 1024;
}

async function main(): Promise<void> {
  const flags = flagsOrHelp(
    FLAGS,
    'Measures Skein compared with llama-server with many agents and random weights.',
  );
  if (flags === null) return;
  const model = new ShapeFile(flags);
  const reports = [{ of: agentsReport, document: 'docs/lab/comparisons.md', section: 'agents' }];
  try {
    await runComparison(flags, { plan: () => planOf(flags, model), reports });
  } finally {
    model.remove();
  }
}

type Load = Omit<AgentsLoad, 'url' | 'model' | 'seed'>;

function planOf(flags: FlagValues<typeof FLAGS>, model: ShapeFile): ComparisonPlan<Load> {
  const load: Load = {
    agents: countOf('agents', flags.agents),
    turns: countOf('turns', flags.turns),
    functions: countOf('functions', flags.functions, 0),
    historyWords: countOf('history', flags.history),
    resultWords: countOf('result', flags.result),
    generate: countOf('generate', flags.generate),
  };
  const threads = countOf('threads', flags.threads);
  const contextTokens = contextOf(load);
  model.write();
  const bytes = statSync(model.path).size;
  let seed = 0;
  const measured = (start: Parameters<typeof withServer>[0]) => (shape: Load) =>
    withServer(start, ({ url, model: name }) => agentsRates({ ...shape, url, model: name, seed: seed++ }));
  const skein: Candidate<Load> = {
    engine: 'skein',
    format: model.type,
    open: () => {
      const args = ['--model', model.path, '--cache-dir', model.cache, '--threads', `${threads}`];
      args.push('--max-active-requests', `${load.agents}`, '--max-context-tokens', `${contextTokens}`);
      return {
        ...{ name: 'skein', engine: 'skein', format: model.type, bytes, version: skeinDigest() },
        measure: measured((port) => spawnSkein([...args, '--port', `${port}`])),
      };
    },
  };
  const llama: Candidate<Load> = {
    engine: LLAMA_SERVER,
    format: model.type,
    open: () => {
      const peer = new LlamaCpp(flags.peers);
      const start = (port: number) =>
        peer.serve(model.path, model.type, port, threads, load.agents, contextTokens);
      return {
        ...{ name: LLAMA_SERVER, engine: LLAMA_SERVER, format: model.type, bytes, version: peer.version() },
        measure: measured(start),
      };
    },
  };
  const others = listOf(flags.server).map((text) => runningServer(text, () => seed++));
  const { agents, turns, functions, history, result, generate } = flags;
  return {
    candidates: [skein, llama, ...others],
    columns: [{ name: 'agents', shape: load }],
    settings: { model: model.name, threads, agents, turns, functions, history, result, generate },
  };
}

/** A server that is already running, as NAME=URL. */
function runningServer(text: string, nextSeed: () => number): Candidate<Load> {
  const [name = '', url = ''] = text.split(/=(.*)/s);
  if (name === '' || !URL.canParse(url)) throw new Error(`--server: expected NAME=URL, found '${text}'.`);
  return {
    engine: name,
    format: 'as started',
    open: () => ({
      ...{ name, engine: name, format: 'as started', bytes: 0, version: 'as started' },
      measure: async (shape: Load) =>
        agentsRates({ ...shape, url, model: await servedModel(url), seed: nextSeed() }),
    }),
  };
}

await main();
