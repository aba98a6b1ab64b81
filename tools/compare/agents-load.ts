import { EventSourceParserStream } from 'eventsource-parser/stream';
import { Agent, fetch } from 'undici';
import { drawWords } from '../../loadgen/data/words.js';
import { Random } from '../../loadgen/random.js';
import { median, percentile } from '../support/statistics.js';

/** A server, and what its agents have with them. */
export interface AgentsLoad {
  /** Base URL of an OpenAI-compatible server. */
  url: string;
  model: string;
  /** Agents at once. */
  agents: number;
  /** Turns of each agent after its first question. */
  turns: number;
  /** Functions, the same for all agents. */
  functions: number;
  /** Words of an agent's own history at its first question: a token each, in the vocabulary of a made-up model. */
  historyWords: number;
  /** Words that each turn adds: what a function has returned. */
  resultWords: number;
  /** Tokens of an answer. */
  generate: number;
  /** Seed of the words: another seed, other conversations. */
  seed: number;
}

/** What agents have measured. Milliseconds; shares from 0 to 1. */
export type AgentsRates = {
  /** From the first question of all to the last first token. */
  readMs: number;
  /** Until the first token of a later turn. */
  laterP50: number;
  laterP99: number;
  /** From a later turn's question to the last token of its answer. */
  turnP50: number;
  /** Prompt tokens of later turns that the server took from its cache; NaN where it does not say. */
  cachedShare: number;
  /** Prompt tokens that it computed for a later turn. */
  computedTokens: number;
  /** Generated tokens a second, of all later turns. */
  tokensPerSecond: number;
  /** The time of the quickest agent for its later turns over that of the slowest. */
  fairness: number;
};

interface Message {
  role: 'system' | 'user' | 'assistant';
  content: string;
}

/** One answer. */
interface Turn {
  text: string;
  startMs: number;
  firstMs: number;
  endMs: number;
  promptTokens: number;
  /** NaN: the server does not say. */
  cachedTokens: number;
  generatedTokens: number;
}

/** Words of a message of a history, of the instructions that all agents share, and of what a function is for. */
const [MESSAGE_WORDS, SYSTEM_WORDS, PURPOSE_WORDS] = [250, 500, 20];

/** Lets agents go through their turns, all at once, each with its own history in front of functions that all have. @throws where one is refused */
export async function agentsRates(load: AgentsLoad): Promise<AgentsRates> {
  const tools = functionsOf(load.functions);
  const histories = Array.from({ length: load.agents }, (_, agent) => historyOf(load, agent));
  const ask = (messages: readonly Message[]) => answer(load, messages, tools);
  const firsts = await Promise.all(histories.map(ask));
  const later = await Promise.all(
    histories.map(async (history, agent) => {
      const random = new Random(load.seed * 1000 + 500 + agent);
      const messages = [...history];
      const turns: Turn[] = [];
      for (let last = firsts[agent]!; turns.length < load.turns; last = turns.at(-1)!) {
        messages.push({ role: 'assistant', content: last.text });
        messages.push({ role: 'user', content: drawWords(load.resultWords, random) });
        turns.push(await ask(messages));
      }
      return turns;
    }),
  );
  return ratesOf(firsts, later);
}

/** Function definitions as an agent has them. */
export function functionsOf(count: number): object[] {
  const random = new Random(129);
  return Array.from({ length: count }, (_, i) => ({
    type: 'function',
    function: {
      name: `f${i}`,
      description: ` ${drawWords(PURPOSE_WORDS, random)}`,
      parameters: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
    },
  }));
}

/** What an agent's conversation has before its first question, and the question. */
export function historyOf(
  { historyWords, seed }: Pick<AgentsLoad, 'historyWords' | 'seed'>,
  agent: number,
): Message[] {
  const random = new Random(seed * 1000 + agent);
  const messages: Message[] = [{ role: 'system', content: drawWords(SYSTEM_WORDS, new Random(1)) }];
  for (let left = historyWords; left > 0; left -= MESSAGE_WORDS) {
    const role = messages.length % 2 === 1 ? 'user' : 'assistant';
    messages.push({ role, content: drawWords(Math.min(left, MESSAGE_WORDS), random) });
  }
  if (messages.at(-1)!.role !== 'user') messages.push({ role: 'user', content: drawWords(10, random) });
  return messages;
}

interface Chunk {
  choices?: { delta?: { content?: string | null } }[];
  usage?: {
    prompt_tokens: number;
    completion_tokens: number;
    prompt_tokens_details?: { cached_tokens?: number } | null;
  } | null;
}

/** A first token may come after many minutes, where many agents ask for a long prompt at once. */
const PATIENT = new Agent({ headersTimeout: 0, bodyTimeout: 0 });

async function answer(
  { url, model, generate }: AgentsLoad,
  messages: readonly Message[],
  tools: readonly object[],
): Promise<Turn> {
  const startMs = performance.now();
  const response = await fetch(`${url}/v1/chat/completions`, {
    dispatcher: PATIENT,
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      ...{ model, messages, tools, max_tokens: generate, temperature: 0, ignore_eos: true },
      ...{ stream: true, stream_options: { include_usage: true } },
    }),
  });
  if (!response.ok) throw new Error(`${url} answers ${response.status}: ${await response.text()}`);
  const turn = { text: '', startMs, firstMs: 0, endMs: 0, promptTokens: 0, generatedTokens: 0 };
  let cachedTokens = Number.NaN;
  const events = response
    .body!.pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream());
  for await (const { data } of events) {
    if (data === '[DONE]') break;
    const { choices, usage } = JSON.parse(data) as Chunk;
    const text = choices?.[0]?.delta?.content ?? '';
    if (text !== '') turn.firstMs ||= performance.now();
    turn.text += text;
    if (!usage) continue;
    turn.promptTokens = usage.prompt_tokens;
    turn.generatedTokens = usage.completion_tokens;
    cachedTokens = usage.prompt_tokens_details?.cached_tokens ?? Number.NaN;
  }
  turn.endMs = performance.now();
  turn.firstMs ||= turn.endMs;
  return { ...turn, cachedTokens };
}

function ratesOf(firsts: readonly Turn[], later: readonly (readonly Turn[])[]): AgentsRates {
  const turns = later.flat();
  const waits = turns.map(({ startMs, firstMs }) => firstMs - startMs);
  const times = later.map((own) => own.at(-1)!.endMs - own[0]!.startMs);
  const sum = (of: (turn: Turn) => number) => turns.reduce((total, turn) => total + of(turn), 0);
  const [prompt, cached] = [sum((turn) => turn.promptTokens), sum((turn) => turn.cachedTokens)];
  const startMs = Math.min(...turns.map((turn) => turn.startMs));
  const endMs = Math.max(...turns.map((turn) => turn.endMs));
  return {
    readMs:
      Math.max(...firsts.map(({ firstMs }) => firstMs)) - Math.min(...firsts.map((turn) => turn.startMs)),
    laterP50: median(waits),
    laterP99: percentile(waits, 0.99),
    turnP50: median(turns.map(({ startMs, endMs }) => endMs - startMs)),
    cachedShare: cached / prompt,
    computedTokens: (prompt - cached) / turns.length,
    tokensPerSecond: (1000 * sum((turn) => turn.generatedTokens)) / (endMs - startMs),
    fairness: Math.min(...times) / Math.max(...times),
  };
}
