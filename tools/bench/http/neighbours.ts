import type { BenchServer } from './server-process.js';

type Neighbour = (server: BenchServer) => Promise<string>;

const WORDS =
  'the of and to in is was for that with he as his on be at by this had not are but from or have an they '.split(
    ' ',
  );
const MIB = 2 ** 20;

/** Text of many different words, some 4 characters a token. */
function prose(length: number): string {
  let text = '';
  for (let i = 0; text.length < length; i++) text += `${WORDS[(i * 7919) % WORDS.length]} number${i % 997} `;
  return text.slice(0, length);
}

function post(path: string, body: object | string): Neighbour {
  return async ({ url }) => {
    const response = await fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
    const text = await response.text();
    const usage = /"prompt_tokens":(\d+)/.exec(text)?.[1];
    return `${response.status}${usage === undefined ? '' : `, ${usage} tokens`}`;
  };
}

const chat = (content: string, more: object = {}) =>
  post('/v1/chat/completions', { messages: [{ role: 'user', content }], max_tokens: 1, ...more });

/** Things that one client may do to the others, by name. */
export const NEIGHBOURS: Readonly<Record<string, Neighbour>> = {
  nothing: async () => '-',
  'a chat of 500 KB': chat(prose(500_000)),
  'a prompt of 500 KB': post('/v1/completions', { prompt: prose(500_000), max_tokens: 1 }),
  'a prompt of 100,000 token ids': post('/v1/completions', {
    prompt: Array.from({ length: 100_000 }, (_, i) => 300 + ((i * 7919) % 20_000)),
    max_tokens: 1,
  }),
  'a chat of 500 KB, all control tokens in text': chat('<|im_start|>user '.repeat(30_000)),
  'a chat of 10,000 messages': post('/v1/chat/completions', {
    messages: Array.from({ length: 10_000 }, (_, i) => ({
      role: i % 2 === 0 ? 'user' : 'assistant',
      content: `Turn ${i} of a talk without an end.`,
    })),
    max_tokens: 1,
  }),
  'a chat of 10 MB': chat(prose(10 * MIB)),
  '10 MB of small objects': post('/v1/chat/completions', {
    messages: [{ role: 'user', content: 'Hi' }],
    max_tokens: 1,
    metadata: Array.from({ length: 200_000 }, (_, i) => ({ name: `field ${i}`, value: i })),
  }),
  '10 MB that is no JSON': post('/v1/chat/completions', `[${'[],'.repeat(3_400_000)}`),
  'a field of 10 MB': post('/v1/chat/completions', { messages: [], [prose(10 * MIB)]: 1 }),
};
