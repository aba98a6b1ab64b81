import type { Random } from '../../support/random.js';
import { background, batch, conversation } from './dialogues.js';
import { type Body, common, type Script, single } from './script.js';
import { sharedBeginning, words } from './texts.js';

/** A kind of request. */
export interface RequestKind {
  name: string;
  draw: (random: Random) => Script;
  /** Only gateways and servers of Skein take it, and no router. */
  isOwn?: boolean;
}

/** Streamed answers say how many tokens they have. */
const streamed = { stream: true, stream_options: { include_usage: true } };
const short = (random: Random) => words(random, 3 + random.below(12));

/** A chat with one message. */
const chat = (random: Random, body: Body): Script =>
  single('/v1/chat/completions', {
    ...common(random),
    max_tokens: 20 + random.below(60),
    messages: [{ role: 'user', content: short(random) }],
    ...body,
  });

/** A completion that ends with its number of tokens. @param prompt default: a short one */
const completion = (random: Random, body: Body, prompt: unknown = short(random)): Script =>
  single('/v1/completions', {
    ...common(random),
    max_tokens: 20 + random.below(60),
    ignore_eos: true,
    prompt,
    ...body,
  });

const SCHEMA = {
  type: 'object',
  properties: {
    name: { type: 'string', maxLength: 12 },
    age: { type: 'integer', minimum: 0, maximum: 99 },
    likes: { type: 'array', items: { enum: ['geese', 'boats', 'rivers'] }, maxItems: 3 },
  },
  required: ['name', 'age', 'likes'],
  additionalProperties: false,
};
const GUIDE = { type: 'json_schema', json_schema: { name: 'person', strict: true, schema: SCHEMA } };
const TOOL = { type: 'function', function: { name: 'row', description: 'Rows a boat.', parameters: SCHEMA } };

/** All kinds. */
export const REQUEST_KINDS: readonly RequestKind[] = [
  { name: 'chat, streamed', draw: (random) => chat(random, streamed) },
  { name: 'chat, plain', draw: (random) => chat(random, {}) },
  {
    name: 'several choices',
    draw: (random) => chat(random, { ...streamed, n: 2 + random.below(3) }),
  },
  {
    name: 'several prompts and choices, plain',
    draw: (random) => completion(random, { n: 2 }, [short(random), short(random)]),
  },
  {
    name: 'log-probs, streamed',
    draw: (random) => chat(random, { ...streamed, logprobs: true, top_logprobs: 3 }),
  },
  { name: 'log-probs', draw: (random) => completion(random, { logprobs: 2 }) },
  {
    name: 'JSON by a schema',
    draw: (random) => chat(random, { ...streamed, max_tokens: 120, response_format: GUIDE }),
  },
  {
    name: 'tools',
    draw: (random) => chat(random, { ...streamed, max_tokens: 120, tools: [TOOL], tool_choice: 'required' }),
  },
  {
    name: 'stop words',
    draw: (random) => completion(random, { ...streamed, stop: [words(random, 1), ' the b'] }),
  },
  {
    name: 'penalties',
    draw: (random) => completion(random, { ...streamed, repetition_penalty: 1.3, frequency_penalty: 0.3 }),
  },
  { name: 'samplers with a state', draw: (random) => completion(random, { ...streamed, mirostat: 2 }) },
  { name: 'greedy', draw: (random) => chat(random, { ...streamed, temperature: 0 }) },
  {
    name: 'long prompts',
    draw: (random) => completion(random, streamed, `${sharedBeginning(random)} ${words(random, 40)}`),
  },
  {
    name: 'beams',
    isOwn: true,
    draw: (random) => completion(random, { max_tokens: 10 + random.below(20), use_beam_search: true, n: 2 }),
  },
  {
    name: 'messages of Anthropic',
    isOwn: true,
    draw: (random) =>
      single('/v1/messages', {
        ...{ model: 'gosling', temperature: 0, max_tokens: 40 },
        messages: [{ role: 'user', content: short(random) }],
      }),
  },
  { name: 'responses that continue others', isOwn: true, draw: conversation },
  { name: 'responses in the background', isOwn: true, draw: background },
  { name: 'batches and files', isOwn: true, draw: batch },
];
