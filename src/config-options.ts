import * as z from 'zod';
import { chunkMsText } from '../engine/executors/chunk-times.js';
import { CHUNKING_POLICIES } from '../scheduler/types.js';
import { DEFAULT_CHUNKING_POLICY, MAX_COUNT, rangeText, TOKENS_PER_BLOCK } from './option-ranges.js';

export interface OptionSpec {
  schema: z.ZodType;
  kind: 'text' | 'number' | 'switch' | 'list';
  /** The values, where there are only some. */
  choices?: readonly string[] | undefined;
  /** One line for --help and for the table of options. */
  help: string;
  /** What stands for the value in --help. */
  metavar: string;
  /** How the default is written; null where there is none. */
  defaultText: string | null;
  /** Path in GptManagerOptions. */
  gptManagerField: string | null;
  /** Name in TensorRT-LLM's batch manager. */
  seedName: string | null;
}

interface Description {
  help: string;
  metavar?: string;
  defaultText?: string;
  gptManagerField?: string;
  seedName?: string;
}

function describe(description: Description, kind: OptionSpec['kind'], preset: unknown) {
  return {
    kind,
    help: description.help,
    metavar: description.metavar ?? 'N',
    defaultText: description.defaultText ?? (preset === undefined ? null : String(preset)),
    gptManagerField: description.gptManagerField ?? null,
    seedName: description.seedName ?? null,
  };
}

const SWITCH = 'true or false';
const TEXTS = 'a text that is not empty, or a list of such';
const PATHS = 'a path, or NAME=PATH, or a list of these';
const NAMES = 'a name, or a list of names';
const SHARE = 'a number above 0 and at most 1';
const NAME = 'a text that is not empty';

function text(description: Description & { metavar: string }) {
  return {
    schema: z.string({ error: NAME }).min(1, { error: NAME }).optional(),
    ...describe(description, 'text', undefined),
  };
}

/** One text or several; each source may give several: see readList in config.ts. */
function list(error: string, description: Description & { metavar: string }) {
  const item = z.string({ error }).min(1, { error });
  return {
    schema: z.array(item, { error }).min(1, { error }).optional(),
    ...describe(description, 'list', undefined),
  };
}

function switchOf(preset: boolean, description: Description) {
  const described = describe({ metavar: '', ...description }, 'switch', preset);
  return { schema: z.boolean({ error: SWITCH }).default(preset), ...described };
}

function textWithDefault<T extends string>(preset: T, description: Description & { metavar: string }) {
  return {
    schema: z.string({ error: NAME }).min(1, { error: NAME }).default(preset),
    ...describe(description, 'text', preset),
  };
}

/** The messages of the schemas say what is expected: see valueError in config.ts. */
function wholeNumber(min: number, max: number) {
  const error = rangeText({ min, max, integer: true });
  return z.int({ error }).min(min, { error }).max(max, { error });
}

function integer(least: number, most: number, description: Description) {
  return { schema: wholeNumber(least, most).optional(), ...describe(description, 'number', undefined) };
}

function integerWithDefault(preset: number, least: number, most: number, description: Description) {
  return { schema: wholeNumber(least, most).default(preset), ...describe(description, 'number', preset) };
}

function choice<const T extends readonly [string, ...string[]]>(
  choices: T,
  preset: T[number],
  description: Description,
) {
  return {
    schema: z.enum(choices).default(preset as never),
    choices,
    ...describe({ metavar: choices.join('|'), ...description }, 'text', preset),
  };
}

const MOST = MAX_COUNT;

/** Every option of the server, described once: flags, environment, file, --help and the documentation follow. */
export const OPTIONS = {
  model: list(PATHS, {
    metavar: '[NAME=]PATH',
    help: 'a model: a Hugging Face directory, a GGUF file or a folder with one, an engine directory, or ORG/NAME[:QUANT] of the Hugging Face hub, downloaded where it is not in the cache; again for further ones, each under its name (separated by commas in the variable)',
    defaultText: 'the demo model',
    gptManagerField: 'enginePath',
    seedName: 'trtEnginePath',
  }),
  revision: text({
    metavar: 'REVISION',
    help: 'branch, tag or commit of a model from the hub',
    defaultText: 'main',
  }),
  servedModelName: list(NAMES, {
    metavar: 'NAME',
    help: 'the name that clients ask for, where there is one model; again for further names of it',
    defaultText: "the model's folder or file name",
  }),
  host: textWithDefault('127.0.0.1', { metavar: 'ADDRESS', help: 'address to listen on' }),
  port: integerWithDefault(8000, 0, 65535, { help: 'port to listen on; 0 takes a free one' }),
  apiKey: list(TEXTS, {
    metavar: 'KEY',
    help: 'key that clients must send; repeated, several keys are good',
    defaultText: 'none',
  }),
  apiKeyFile: text({
    metavar: 'FILE',
    help: 'further keys, as JSON or YAML: a list of {name, key, weight, admin, group}; the weight is the share of a key with --fair-queueing (1 where it is not given); an admin may reset the cache and sees the ids of all requests (false where it is not given, true for a key that is the only one); keys of a group find what was computed for the prompts of each other (not given: no other key does)',
    defaultText: 'none',
  }),
  corsOrigin: list(TEXTS, {
    metavar: 'ORIGIN',
    help: 'web pages that may use the server beside its own, such as https://example.com; repeated, several; loopback for those of this machine (any port of localhost, 127.0.0.0/8 or [::1]), * for all and none for none',
    defaultText: 'loopback',
  }),
  allowedHost: list(NAMES, {
    metavar: 'NAME',
    help: 'further name by which the server may be asked (the Host header) beside localhost, 127.0.0.0/8 and [::1], such as host.docker.internal, or .example.com for all below it; repeated, several; * for any; where it is given, no other name is answered',
    defaultText: 'any with API keys or where --host is no loopback address, else none',
  }),
  tlsCert: text({
    metavar: 'FILE',
    help: 'certificate chain in PEM: the server speaks HTTPS; needs --tls-key',
    defaultText: 'none',
  }),
  tlsKey: text({ metavar: 'FILE', help: 'private key of the certificate, in PEM', defaultText: 'none' }),
  maxBodySize: integerWithDefault(16 * 1024 * 1024, 1024, 2 ** 31 - 1, {
    metavar: 'BYTES',
    help: 'longest body of a request; a longer one is refused with 413',
  }),
  maxHeldMemory: integer(2 ** 20, Number.MAX_SAFE_INTEGER, {
    metavar: 'BYTES',
    help: 'memory that all requests together may take, by estimate: their bodies, prompts that wait, answers and stored responses; what does not fit is refused with 429, before its body is read where its length is told',
    defaultText: 'a quarter of what the models leave',
  }),
  requestTimeout: integerWithDefault(0, 0, 2_000_000, {
    metavar: 'SECONDS',
    help: 'time after which an answer ends with what it has (finish_reason length, stop_reason time_limit), waiting included; a request may ask for less with time_limit_ms; 0 for no limit',
  }),
  streamStallTimeout: integerWithDefault(30, 1, 86_400, {
    metavar: 'SECONDS',
    help: 'a client that does not read its answer for this long is cut off, and its request ended; one that stops in the middle of a body is refused with 408',
  }),
  maxConnections: integerWithDefault(10_000, 1, 1_000_000, {
    help: 'connections that may be open at once; what is asked on further ones is refused with 503',
  }),
  weights: choice(['auto', 'f32', 'bf16', 'int8', 'int4'], 'auto', {
    help: 'precision of the weights; auto is int4 or int8 for checkpoints of 4 or 8 bits, else bf16',
  }),
  outputWeights: choice(['auto', 'f32', 'bf16', 'int8'], 'auto', {
    help: 'precision of the embedding and the output layer; auto is that of the weights, int8 with int4',
  }),
  kvDtype: choice(['auto', 'f32', 'bf16', 'int8'], 'auto', {
    help: 'precision of the KV cache; auto takes f32 with f32 weights, else bf16; int8 holds nearly twice the tokens of bf16, on the native executor',
    gptManagerField: 'optionalParams.kvDtype',
  }),
  executor: choice(['auto', 'native', 'tensorflow', 'wasm'], 'auto', {
    help: 'what computes: native is the C++ addon, wasm runs wherever Node.js does, slower; auto takes the fastest that runs here; tensorflow needs "skein setup tensorflow", and auto takes it where it sees a GPU',
    gptManagerField: 'optionalParams.executor',
  }),
  threads: integer(1, 1024, {
    help: 'threads that compute',
    defaultText: "the container's CPU quota",
    gptManagerField: 'optionalParams.threads',
  }),
  computeWeight: integerWithDefault(1, 1, 1000, {
    metavar: 'WEIGHT',
    help: 'share of the processors beside other models: with twice the weight of another, twice its time',
    gptManagerField: 'optionalParams.computeWeight',
  }),
  cacheDir: text({
    metavar: 'DIR',
    help: 'where engines built from models are kept',
    defaultText: "the user's cache directory",
  }),
  modelType: choice(['InflightFusedBatching', 'InflightBatching', 'V1'], 'InflightFusedBatching', {
    metavar: 'SCHEME',
    help: 'batching scheme; V1 is the classic one, batches in lockstep without chunked context or block reuse, to compare with',
    gptManagerField: 'modelType',
    seedName: 'modelType',
  }),
  schedulerPolicy: choice(['GUARANTEED_NO_EVICT', 'MAX_UTILIZATION'], 'GUARANTEED_NO_EVICT', {
    metavar: 'POLICY',
    help: 'whether a request that has begun may be paused for another',
    gptManagerField: 'schedulerPolicy',
    seedName: 'schedulerPolicy',
  }),
  maxNumSequences: integer(1, 65536, {
    help: 'requests that can be active at once',
    defaultText: '64',
    gptManagerField: 'optionalParams.maxNumSequences',
    seedName: 'maxNumSequences',
  }),
  maxBatchSize: integer(1, 65536, {
    help: 'requests of one iteration',
    defaultText: '--max-num-sequences',
    gptManagerField: 'optionalParams.maxBatchSize',
    seedName: 'maxBatchSize',
  }),
  maxNumTokens: integer(1, MOST, {
    help: 'tokens of one iteration',
    defaultText: '2048',
    gptManagerField: 'optionalParams.maxNumTokens',
    seedName: 'maxNumTokens',
  }),
  maxBeamWidth: integerWithDefault(1, 1, 1024, {
    help: 'most beams of a request (use_beam_search); the engine takes room for as many sequences of every request',
    gptManagerField: 'maxBeamWidth',
    seedName: 'maxBeamWidth',
  }),
  maxWaitIterations: integer(1, MOST, {
    help: 'iterations that a request may wait before it passes all that came later, whatever their priorities',
    defaultText: 'no limit',
    gptManagerField: 'optionalParams.maxWaitIterations',
  }),
  startHorizon: integer(1, MOST, {
    metavar: 'TOKENS',
    help: 'MAX_UTILIZATION: tokens that a request must have room to generate when it starts, against thrashing',
    defaultText: 'one step',
    gptManagerField: 'optionalParams.startHorizon',
  }),
  maxInterTokenLatencyMs: integer(1, MOST, {
    metavar: 'MS',
    help: 'bound on the time between two tokens of an answer while prompts come in: these get smaller chunks; needs --enable-chunked-context',
    defaultText: 'no bound',
    gptManagerField: 'optionalParams.maxInterTokenLatencyMs',
  }),
  speculate: choice(['none', 'ngram'], 'none', {
    help: 'where tokens that may come next are found, so that a step can give several: ngram proposes what followed when the last tokens stood in prompt or answer before; no answer changes by it',
    gptManagerField: 'optionalParams.speculate',
  }),
  draftModel: text({
    metavar: 'PATH',
    help: 'a smaller model with the same tokenizer that draws tokens which may come next, so that a step can give several; no answer changes by it; takes what --model takes, and shares the memory',
    defaultText: 'none',
    gptManagerField: 'optionalParams.draftEnginePath',
  }),
  maxDraftLen: integer(1, MOST, {
    metavar: 'TOKENS',
    help: 'most tokens that are proposed at once; how many are depends on how often they are right and on the load',
    defaultText: '16',
    gptManagerField: 'optionalParams.maxDraftLen',
    seedName: 'max_draft_len',
  }),
  maxQueueSize: integerWithDefault(256, 1, 1_000_000, {
    help: 'requests that may wait; more are refused with 429',
  }),
  maxQueueSizePerKey: integer(1, 1_000_000, {
    help: 'of these, requests of one API key',
    defaultText: '--max-queue-size',
  }),
  fairQueueing: switchOf(false, {
    help: 'whose request goes next is decided by deficit round robin over the API keys, in tokens, so that the flood of one key does not starve another',
  }),
  enableChunkedContext: {
    schema: z.boolean({ error: SWITCH }).default(true),
    ...describe(
      {
        metavar: '',
        help: 'long prompts run in chunks beside the generation of others (--no-enable-chunked-context turns it off)',
        gptManagerField: 'optionalParams.enableChunkedContext',
        seedName: 'enableChunkedContext',
      },
      'switch',
      true,
    ),
  },
  chunkingPolicy: {
    schema: z.enum(CHUNKING_POLICIES).optional(),
    choices: CHUNKING_POLICIES,
    ...describe(
      {
        metavar: 'POLICY',
        help: 'who gets the tokens of an iteration where prompts together are longer: with SHORTEST_FIRST short ones pass long ones, which have a turn at least every fourth iteration; with EQUAL_PROGRESS each a block in turns',
        defaultText: DEFAULT_CHUNKING_POLICY,
        gptManagerField: 'optionalParams.chunkingPolicy',
        seedName: 'chunkingPolicy',
      },
      'text',
      undefined,
    ),
  },
  maxChunkMs: integer(1, MOST, {
    metavar: 'MS',
    help: 'time of an iteration for chunks of long prompts, by what recent iterations took: so long a request that comes may have to wait for the prompt of another; four times as long where there is no other request, and for all prompts of an iteration together; needs --enable-chunked-context',
    defaultText: chunkMsText(),
    gptManagerField: 'optionalParams.maxChunkMs',
  }),
  enableBlockReuse: {
    schema: z.boolean({ error: SWITCH }).default(true),
    ...describe(
      {
        metavar: '',
        help: 'prompts that begin alike share what was computed for it (--no-enable-block-reuse turns it off)',
        gptManagerField: 'optionalParams.kvCacheConfig.enableBlockReuse',
        seedName: 'kvCacheConfig.enableBlockReuse',
      },
      'switch',
      true,
    ),
  },
  enableTrtOverlap: {
    schema: z.boolean({ error: SWITCH }).default(false),
    ...describe(
      {
        metavar: '',
        help: 'two micro-batches take turns, so that the work between forwards is hidden behind them; pays where that work is a good part of an iteration',
        gptManagerField: 'optionalParams.enableTrtOverlap',
        seedName: 'enableTrtOverlap',
      },
      'switch',
      false,
    ),
  },
  maxInputLen: integer(1, MOST, {
    help: 'longest prompt in tokens; lowers what the model takes',
    defaultText: "the model's",
    gptManagerField: 'optionalParams.maxInputLen',
    seedName: 'max_input_len',
  }),
  maxSeqLen: integer(2, MOST, {
    help: 'longest prompt and answer together; lowers what the model takes',
    defaultText: "the model's",
    gptManagerField: 'optionalParams.maxSeqLen',
    seedName: 'max_seq_len',
  }),
  defaultMaxTokens: integerWithDefault(1024, 1, MOST, {
    help: 'longest chat answer where the request names no limit',
  }),
  toolCallParser: choice(
    ['auto', 'hermes', 'llama3_json', 'pythonic', 'mistral', 'qwen3_coder', 'deepseek_v3'],
    'auto',
    {
      metavar: 'FORMAT',
      help: 'how the model writes calls of functions; auto: as its chat template has it',
    },
  ),
  reasoningParser: choice(['auto', 'deepseek_r1', 'qwen3', 'none'], 'auto', {
    metavar: 'FORMAT',
    help: 'how reasoning is told from answers; auto: by the chat template',
  }),
  maxLogprobs: integerWithDefault(20, -1, MOST, {
    help: 'most log-probs beside that of each token that a request may ask for; -1: the whole vocabulary',
  }),
  maxTokens: integer(1, MOST, {
    help: 'tokens in the KV cache over all requests',
    defaultText: 'what memory allows',
    gptManagerField: 'optionalParams.kvCacheConfig.maxTokens',
    seedName: 'kvCacheConfig.maxTokens',
  }),
  freeGpuMemoryFraction: {
    schema: z.number({ error: SHARE }).gt(0, { error: SHARE }).max(1, { error: SHARE }).optional(),
    ...describe(
      {
        help: 'share of the memory left after loading that the KV cache may take, 0 to 1',
        metavar: 'SHARE',
        defaultText: '0.9',
        gptManagerField: 'optionalParams.kvCacheConfig.freeGpuMemoryFraction',
        seedName: 'kvCacheConfig.freeGpuMemoryFraction',
      },
      'number',
      undefined,
    ),
  },
  hostCacheSize: integer(0, Number.MAX_SAFE_INTEGER, {
    metavar: 'BYTES',
    help: 'memory beside the KV cache for blocks of prompts that would be forgotten otherwise',
    defaultText: '0',
    gptManagerField: 'optionalParams.kvCacheConfig.hostCacheSize',
    seedName: 'kvCacheConfig.hostCacheSize',
  }),
  secondaryOffloadMinPriority: integer(0, 100, {
    metavar: 'PRIORITY',
    help: 'lowest retention priority with which a block goes there',
    defaultText: '30',
    gptManagerField: 'optionalParams.kvCacheConfig.secondaryOffloadMinPriority',
    seedName: 'kvCacheConfig.secondaryOffloadMinPriority',
  }),
  maxAttentionWindow: integer(1, MOST, {
    help: 'tokens that each token attends to; a request holds KV cache for no more, and may be longer than the cache',
    defaultText: "the model's",
    gptManagerField: 'optionalParams.kvCacheConfig.maxAttentionWindow',
    seedName: 'kvCacheConfig.maxAttentionWindow',
  }),
  sinkTokenLength: integer(0, MOST, {
    help: 'of the attention window, the first tokens of a request, which stay in it (StreamingLLM)',
    defaultText: '0',
    gptManagerField: 'optionalParams.kvCacheConfig.sinkTokenLength',
    seedName: 'kvCacheConfig.sinkTokenLength',
  }),
  tokensPerBlock: {
    schema: z.literal(TOKENS_PER_BLOCK, { error: `one of ${TOKENS_PER_BLOCK.join(', ')}` }).optional(),
    ...describe(
      {
        help: 'tokens of one KV cache block, a power of two from 8 to 4096',
        defaultText: '32',
        gptManagerField: 'optionalParams.tokensPerBlock',
        seedName: 'tokensPerBlock',
      },
      'number',
      undefined,
    ),
  },
  drainTimeout: integerWithDefault(30, 0, 86_400, {
    metavar: 'SECONDS',
    help: 'how long answers may go on after SIGTERM or SIGINT',
  }),
  watchdogTimeout: integerWithDefault(600, 0, 86_400, {
    metavar: 'SECONDS',
    help: 'an engine that finishes no iteration for this long is started anew; longer than the longest iteration, 0 for never',
    gptManagerField: 'optionalParams.watchdogTimeoutMs',
  }),
  exitOnFailure: {
    schema: z.boolean().default(true),
    ...describe(
      {
        metavar: '',
        help: 'ends the process when the engine died and cannot be started again (--no-exit-on-failure stays and answers 503)',
      },
      'switch',
      true,
    ),
  },
  accessLog: switchOf(false, {
    help: 'writes a line of JSON for each request to stderr, whatever --log-level is; it holds no text of any prompt',
  }),
  logLevel: choice(['trace', 'debug', 'info', 'warn', 'error', 'silent'], 'warn', {
    metavar: 'LEVEL',
    help: 'info adds a line for each request, debug for /health, /live and /metrics too; the log is JSON on stderr',
  }),
} as const satisfies Record<string, OptionSpec>;

export type OptionName = keyof typeof OPTIONS;

/** maxBatchSize -> max-batch-size. */
export function flagName(option: string): string {
  return option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** maxBatchSize -> SKEIN_MAX_BATCH_SIZE. */
export function variableName(option: string): string {
  return `SKEIN_${flagName(option).replaceAll('-', '_').toUpperCase()}`;
}

const code = (name: string | null) => (name === null ? '' : `\`${name}\``);

function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n');
}

/** Flags, variables, defaults and meanings as a Markdown table, for users of the server. */
export function flagsTable(): string {
  const rows = Object.entries<OptionSpec>(OPTIONS).map(([name, spec]) => [
    code(`--${flagName(name)}`),
    code(variableName(name)),
    spec.defaultText ?? 'required',
    (spec.choices === undefined ? spec.help : `${spec.help}; one of ${spec.choices.join(', ')}`).replaceAll(
      '|',
      '\\|',
    ),
  ]);
  return markdownTable(['flag', 'environment', 'default', 'meaning'], rows);
}

/** All names of each option side by side as a Markdown table, for readers of the code. */
export function optionsTable(): string {
  const rows = Object.entries<OptionSpec>(OPTIONS).map(([name, spec]) => [
    code(`--${flagName(name)}`),
    code(variableName(name)),
    code(name),
    code(spec.gptManagerField),
    code(spec.seedName),
    spec.defaultText ?? 'required',
  ]);
  return markdownTable(['flag', 'environment', 'option', 'GptManager field', "seed's name", 'default'], rows);
}
