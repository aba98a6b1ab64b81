/** A request, and whether its answer comes as server-sent events. */
export interface Asked {
  path: string;
  body: Readonly<Record<string, unknown>>;
}

const PERSON = {
  type: 'object',
  properties: { name: { type: 'string', maxLength: 8 }, age: { type: 'integer', minimum: 0, maximum: 99 } },
  required: ['name', 'age'],
  additionalProperties: false,
};
const WEATHER = {
  name: 'get_weather',
  description: 'The weather of a city.',
  parameters: {
    type: 'object',
    properties: { city: { enum: ['Paris', 'Rome'] }, days: { type: 'integer', minimum: 1, maximum: 9 } },
    required: ['city', 'days'],
  },
};
const chatTool = { type: 'function', function: WEATHER };

type Maker = (number: number) => Asked;

const chat = (number: number, fields: object): Asked => ({
  path: '/v1/chat/completions',
  body: {
    model: 'chat',
    messages: [{ role: 'user', content: `Say ${number}.` }],
    max_tokens: 16 + (number % 24),
    seed: number,
    ...fields,
  },
});
const completion = (number: number, fields: object): Asked => ({
  path: '/v1/completions',
  body: {
    model: 'chat',
    prompt: `Once ${number}`,
    max_tokens: 16 + (number % 24),
    seed: number,
    ignore_eos: true,
    ...fields,
  },
});
const response = (number: number, fields: object): Asked => ({
  path: '/v1/responses',
  body: {
    model: 'chat',
    input: `Tell ${number}.`,
    max_output_tokens: 16 + (number % 24),
    seed: number,
    ...fields,
  },
});
const stream = { stream: true };
const schema = { type: 'json_schema', json_schema: { name: 'person', schema: PERSON } };

/** All that clients ask for: what is streamed more often, since it is what is left in the middle. */
const MAKERS: readonly Maker[] = [
  (number) => chat(number, { ...stream, ignore_eos: true }),
  (number) => completion(number, { ...stream, n: 2 }),
  (number) => chat(number, { ...stream, response_format: schema, max_tokens: 60 }),
  (number) => chat(number, { ...stream, tools: [chatTool], tool_choice: 'required', max_tokens: 80 }),
  (number) => response(number, { ...stream, store: number % 2 === 0, ignore_eos: true }),
  (number) =>
    completion(number, { ...stream, structured_outputs: { regex: '[a-f]{20,30}' }, ignore_eos: false }),
  (number) => chat(number, { ...stream, logprobs: true, top_logprobs: 3, ignore_eos: true }),
  (number) => completion(number, { use_beam_search: true, best_of: 3, n: 2 }),
  (number) =>
    response(number, { ...stream, tools: [{ type: 'function', ...WEATHER }], tool_choice: 'required' }),
  (number) =>
    completion(number, { ...stream, prompt: [`One ${number}`, `Two ${number}`], stop: ['qq'], min_p: 0.1 }),
  (number) => chat(number, { n: 2, tools: [chatTool], top_k: 5 }),
  (number) => completion(number, { prompt_logprobs: 2, logprobs: 2, echo: true }),
  () => ({ path: '/v1/embeddings', body: { model: 'vectors', input: ['the cat sat', 'a dog'] } }),
  () => ({
    path: '/v1/rerank',
    body: { model: 'scores', query: 'what?', documents: ['the dog sat', 'a cat'] },
  }),
];

/** Number of different requests; each number below it always names the same request. */
export const NUM_REQUESTS = 2 * MAKERS.length;

export function requestOf(number: number): Asked {
  return MAKERS[number % MAKERS.length]!(number);
}

/** Names and times that an answer has for itself, and what of the cache it found. */
const OWN_FIELDS: ReadonlySet<string> = new Set([
  ...['id', 'call_id', 'created', 'created_at', 'completed_at', 'cached_tokens', 'item_id'],
]);

/** The parts of an answer that are the same each time; for a stream, the text that its frames add up to. */
export function contentOf(body: string): unknown {
  if (!body.includes('data: ')) return withoutOwn(JSON.parse(body));
  const frames = [...body.matchAll(/^data: (\{.*\})$/gm)].map(([, json]) => JSON.parse(json!) as Frame);
  const last = frames.at(-1);
  if (last?.response !== undefined) return withoutOwn([last.type, last.response]);
  if (!body.endsWith('data: [DONE]\n\n')) throw new Error(`A stream without an end: ...${body.slice(-200)}`);
  const choices: Record<string, unknown>[] = [];
  for (const { index, text, delta = {}, logprobs, finish_reason } of frames.flatMap(
    (frame) => frame.choices ?? [],
  )) {
    choices[index] ??= { text: '', calls: '', tokens: '' };
    const choice = choices[index];
    choice.text += text ?? delta.content ?? '';
    for (const call of delta.tool_calls ?? [])
      choice.calls += `${call.function?.name === undefined ? '' : `\n${call.function.name}`}${call.function?.arguments ?? ''}`;
    choice.tokens += JSON.stringify(logprobs?.content ?? []).slice(1, -1);
    choice.finish ??= finish_reason;
  }
  return choices;
}

interface Frame {
  type?: string;
  response?: object;
  choices?: {
    index: number;
    text?: string;
    delta?: { content?: string; tool_calls?: { function?: { name?: string; arguments?: string } }[] };
    logprobs?: { content?: unknown[] } | null;
    finish_reason: string | null;
  }[];
}

function withoutOwn(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (key, field) => (OWN_FIELDS.has(key) ? undefined : field)));
}
