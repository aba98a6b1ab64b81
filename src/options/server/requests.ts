import { MAX_INT32 } from '../../../base/int32.js';
import { listOf, NAME, oneOf, rule, SWITCH, type Values, wholeNumber } from '../../../base/option-values.js';
import { PROMPT_RULE_NAMES, type PromptRule } from '../../prompt-rules.js';
import { ACCESS, DAY_SECONDS, OF_CLIENTS, ofModel, ofServer, REQUESTS } from './server-option.js';

/** Bounds of what clients may store. */
export const DEFAULT_FILE_LIMITS = {
  maxFileBytes: 200 * 1024 * 1024,
  maxBytes: 4 * 1024 * 1024 * 1024,
  maxFiles: 1000,
};
const BATCHES = 'Files and batches';
const RULES = listOf(`${PROMPT_RULE_NAMES.join(', ')}, or a list of these`);
const PROMPT_RULE: Values<PromptRule[]> = {
  ...RULES,
  accepts: (value): value is PromptRule[] =>
    RULES.accepts(value) && value.every((name) => (PROMPT_RULE_NAMES as string[]).includes(name)),
};

/** Formats in which models write calls. */
export const TOOL_FORMAT_NAMES = [
  'hermes',
  'llama3_json',
  'pythonic',
  'mistral',
  'qwen3_coder',
  'deepseek_v3',
  'gemma4',
  'harmony',
] as const;

/** Name of an MCP server, as a server_label may have it, and its address, which has no credentials. */
const MCP_SERVER = /^([a-zA-Z][\w-]{0,62})=(https?:\/\/[^\s@]+)$/;
const MCP_SERVERS: Values<string[]> = {
  ...rule<string[]>('NAME=URL of an MCP server, without a user in the URL, or a list of these', (value) => {
    if (!Array.isArray(value) || value.length === 0) return false;
    const found = value.map((one) => (typeof one === 'string' ? MCP_SERVER.exec(one) : null));
    const names = new Set(found.map((match) => match?.[1]));
    return names.size === value.length && found.every((match) => match !== null && URL.canParse(match[2]!));
  }),
  kind: 'list',
};

/** Addresses of MCP servers by their names. */
export function mcpUrls(servers: readonly string[] = []): Map<string, string> {
  return new Map(servers.map((one) => one.split(/=(.*)/s, 2) as [string, string]));
}

/** Options of what a request may bring, keep and ask for. */
export const REQUEST_OPTIONS = {
  maxBodyBytes: ofServer(wholeNumber(1024, MAX_INT32), {
    group: REQUESTS,
    unit: 'bytes',
    formerly: 'maxBodySize',
    default: 16 * 1024 * 1024,
    help: 'Largest request body; a larger one gets 413.',
  }),
  maxHeldMemoryBytes: ofServer(wholeNumber(2 ** 20, Number.MAX_SAFE_INTEGER), {
    group: REQUESTS,
    unit: 'bytes',
    formerly: 'maxHeldMemory',
    help: 'Memory for all requests together (bodies, queued prompts, answers, stored responses), by estimate. A request that does not fit gets 429.',
    defaultText: 'a quarter of what the models leave',
  }),
  mcpServer: ofServer(
    MCP_SERVERS,
    {
      group: REQUESTS,
      metavar: 'NAME=URL',
      help: 'MCP server (Streamable HTTP) whose tools this server runs for requests: tools of type mcp, with NAME as server_label or URL as server_url. Repeat for several. Every client may have its tools called.',
      defaultText: 'none',
    },
    OF_CLIENTS,
  ),
  mcpTimeoutSeconds: ofServer(
    wholeNumber(1, DAY_SECONDS),
    {
      group: REQUESTS,
      unit: 'seconds',
      default: 60,
      help: "Longest call of an MCP server's tool; the model is told of a longer one as failed.",
    },
    OF_CLIENTS,
  ),
  filesDir: ofServer(
    NAME,
    {
      group: BATCHES,
      metavar: 'DIR',
      help: 'Folder for files that clients upload for batches (/v1/files). It outlives the server; unfinished batches continue at the next start.',
      defaultText: 'a temporary folder, removed at the end',
    },
    OF_CLIENTS,
  ),
  maxFileBytes: ofServer(
    wholeNumber(1, Number.MAX_SAFE_INTEGER),
    {
      group: BATCHES,
      unit: 'bytes',
      default: DEFAULT_FILE_LIMITS.maxFileBytes,
      help: 'Largest file that a client may upload; a larger one gets 413.',
    },
    OF_CLIENTS,
  ),
  maxFilesBytes: ofServer(
    wholeNumber(1, Number.MAX_SAFE_INTEGER),
    {
      group: BATCHES,
      unit: 'bytes',
      default: DEFAULT_FILE_LIMITS.maxBytes,
      help: 'Most bytes of all stored files together. With several API keys one may use half.',
    },
    OF_CLIENTS,
  ),
  maxFiles: ofServer(
    wholeNumber(1, 1_000_000),
    {
      group: BATCHES,
      unit: 'files',
      default: DEFAULT_FILE_LIMITS.maxFiles,
      help: 'Most stored files. With several API keys one may use half.',
    },
    OF_CLIENTS,
  ),
  maxOfflineRequests: ofServer(
    wholeNumber(1, 1_000_000),
    {
      group: BATCHES,
      unit: 'requests',
      help: 'Most requests of batches that run at once. Interactive requests go first.',
      defaultText: 'half of --max-active-requests',
    },
    OF_CLIENTS,
  ),
  unknownFields: ofServer(oneOf('refuse', 'warn', 'ignore'), {
    group: REQUESTS,
    default: 'warn',
    help: 'What to do with unknown fields of a request. refuse: 400; warn: ignore them, and say so in X-Unknown-Fields and the log; ignore: ignore them. Known fields that are not supported are always refused.',
  }),
  trustRequestChatTemplate: ofServer(SWITCH, {
    group: REQUESTS,
    default: false,
    help: 'Let requests bring their own chat_template (code; limited to 2 seconds and 64 MiB).',
  }),
  withoutPromptRule: ofServer(PROMPT_RULE, {
    group: REQUESTS,
    metavar: 'RULE',
    help: `Turn off a rule that removes changing text from prompts so that the cache is found. ${PROMPT_RULE_NAMES.join(', ')}: Claude Code's first line.`,
    defaultText: 'all rules apply',
  }),
  requestTimeoutSeconds: ofServer(wholeNumber(0, 2_000_000), {
    group: REQUESTS,
    unit: 'seconds',
    formerly: 'requestTimeout',
    default: 0,
    help: 'Longest time for an answer, queueing included; then it ends with the text so far. A request may set less with time_limit_ms. 0: no limit.',
  }),
  streamStallTimeoutSeconds: ofServer(
    wholeNumber(1, DAY_SECONDS),
    {
      group: ACCESS,
      unit: 'seconds',
      formerly: 'streamStallTimeout',
      default: 30,
      help: 'Disconnect a client that does not read its answer, or stops in the middle of a body, for this long.',
    },
    OF_CLIENTS,
  ),
  maxConnections: ofServer(
    wholeNumber(1, 1_000_000),
    {
      group: ACCESS,
      unit: 'connections',
      metavar: 'N',
      default: 10_000,
      help: 'Most open connections; further ones get 503.',
    },
    OF_CLIENTS,
  ),
  defaultMaxTokens: ofModel(wholeNumber(1, MAX_INT32), {
    group: REQUESTS,
    unit: 'tokens',
    defaultText: 'max_new_tokens of generation_config.json, else 1024',
    help: 'Max tokens of a chat answer when the request sets none.',
  }),
  toolCallParser: ofModel(oneOf('auto', ...TOOL_FORMAT_NAMES), {
    group: REQUESTS,
    metavar: 'FORMAT',
    default: 'auto',
    help: 'Format in which the model writes function calls. auto: by its chat template.',
  }),
  reasoningParser: ofModel(oneOf('auto', 'deepseek_r1', 'qwen3', 'gemma4', 'harmony', 'none'), {
    group: REQUESTS,
    metavar: 'FORMAT',
    default: 'auto',
    isForAsking: true,
    help: 'How to separate reasoning from the answer. auto: by the chat template.',
  }),
  maxLogprobs: ofModel(wholeNumber(-1, MAX_INT32), {
    group: REQUESTS,
    metavar: 'N',
    default: 20,
    help: 'Most top log-probs per token that a request may ask for. -1: the whole vocabulary.',
  }),
};
