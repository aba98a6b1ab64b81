import { Agent, request } from 'node:http';
import { createParser } from 'eventsource-parser';
import { percentile } from './statistics.js';

/** What a closed loop of streaming chat clients saw. Milliseconds; latencies over all requests or all gaps. */
export interface HttpRates {
  clients: number;
  /** Generated tokens, as the server counts them, over the time from the first request to the last answer. */
  tokensPerSecond: number;
  firstTokenP50: number;
  firstTokenP99: number;
  /** Between two pieces of one answer. */
  interTokenP50: number;
  interTokenP99: number;
  failed: number;
}

export interface HttpLoad {
  /** Base URL of an OpenAI-compatible server. */
  url: string;
  model: string;
  clients: number;
  /** Requests of each client, one after the other. */
  requests: number;
  /** Words of each prompt; every prompt begins differently, so that no cache of prompts helps. */
  promptWords: number;
  generate: number;
  /** Keep connections between requests. llama-server ends its own behind a stream, and resets a request that comes first. */
  keepAlive?: boolean;
}

interface Answer {
  tokens: number;
  firstTokenMs: number;
  gapsMs: number[];
}

/** Keeps `clients` streams open until each client has had its answers. Greedy, `generate` tokens each. */
export async function loadHttp(load: HttpLoad): Promise<HttpRates> {
  // Without a limit of sockets, or a request that waits for one would get that of an answer that has just ended.
  const agent = new Agent({ keepAlive: load.keepAlive ?? false });
  const answers: Answer[] = [];
  let failed = 0;
  const client = async (index: number) => {
    for (let i = 0; i < load.requests; i++) {
      try {
        answers.push(await ask(load, agent, index * load.requests + i));
      } catch {
        failed++;
      }
    }
  };
  const startMs = performance.now();
  await Promise.all(Array.from({ length: load.clients }, (_, index) => client(index)));
  const seconds = (performance.now() - startMs) / 1000;
  agent.destroy();
  const tokens = answers.reduce((sum, answer) => sum + answer.tokens, 0);
  const first = answers.map(({ firstTokenMs }) => firstTokenMs);
  const gaps = answers.flatMap(({ gapsMs }) => gapsMs);
  return {
    clients: load.clients,
    tokensPerSecond: tokens / seconds,
    firstTokenP50: percentile(first, 0.5),
    firstTokenP99: percentile(first, 0.99),
    interTokenP50: percentile(gaps, 0.5),
    interTokenP99: percentile(gaps, 0.99),
    failed,
  };
}

function ask(load: HttpLoad, agent: Agent, index: number): Promise<Answer> {
  const words = Array.from(
    { length: load.promptWords },
    (_, i) => WORDS[(index * 31 + i * 7) % WORDS.length],
  );
  const body = JSON.stringify({
    model: load.model,
    messages: [{ role: 'user', content: `${index}: ${words.join(' ')}` }],
    max_tokens: load.generate,
    temperature: 0,
    ignore_eos: true,
    stream: true,
    stream_options: { include_usage: true },
  });
  const startMs = performance.now();
  return new Promise((resolve, reject) => {
    const call = request(`${load.url}/v1/chat/completions`, {
      agent,
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
    });
    call.on('error', reject);
    call.on('response', (response) => {
      const answer: Answer = { tokens: 0, firstTokenMs: Number.NaN, gapsMs: [] };
      let lastMs = 0;
      let isDone = false;
      const parser = createParser({
        onEvent: ({ data }) => {
          if (data === '[DONE]') {
            isDone = true;
            return;
          }
          const chunk = JSON.parse(data) as Chunk;
          answer.tokens = chunk.usage?.completion_tokens ?? answer.tokens;
          if (!chunk.choices?.[0]?.delta?.content) return;
          const nowMs = performance.now();
          if (lastMs === 0) answer.firstTokenMs = nowMs - startMs;
          else answer.gapsMs.push(nowMs - lastMs);
          lastMs = nowMs;
        },
      });
      response.setEncoding('utf8');
      response.on('data', (text: string) => parser.feed(text));
      response.on('error', reject);
      response.on('close', () => {
        if (isDone && answer.tokens > 0 && lastMs > 0) resolve(answer);
        else reject(new Error(`HTTP ${response.statusCode}: the stream ended without its end`));
      });
    });
    call.end(body);
  });
}

interface Chunk {
  choices?: { delta?: { content?: string | null } }[];
  usage?: { completion_tokens: number } | null;
}

const WORDS = (
  'river stone cloud window garden music letter winter forest bridge engine paper silver market island mountain ' +
  'candle harbor village morning thunder pocket ladder bottle meadow signal copper orchard'
).split(' ');
