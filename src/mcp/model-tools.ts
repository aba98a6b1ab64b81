import * as z from 'zod';

/** A model that tools ask. */
export interface AskedModel {
  name: string;
  task: 'generation' | 'embedding' | 'score' | 'classification';
}

/** Posts a body to a path of the API. */
export type Post = (path: string, body: object, signal: AbortSignal) => Promise<Response>;

/** What a call of a tool gives: the same as text and as JSON. */
interface ToolResult {
  text: string;
  structured: Record<string, unknown>;
}

/** A tool of models, as the Model Context Protocol lists it. */
export interface ModelTool {
  name: string;
  title: string;
  description: string;
  input: z.ZodObject;
  output: z.ZodObject;
  call(args: Record<string, unknown>, post: Post, signal: AbortSignal): Promise<ToolResult>;
}

const MAX_TEXTS = 256;

/** The tools that these models can be asked by: each is there where a model has the task. */
export function modelTools(models: readonly AskedModel[]): ModelTool[] {
  const namesOf = (...tasks: AskedModel['task'][]) =>
    models.filter(({ task }) => tasks.includes(task)).map(({ name }) => name);
  const [generators, embedders] = [namesOf('generation'), namesOf('embedding')];
  // A model that scores pairs ranks better than one that embeds.
  const rankers = [...namesOf('score'), ...embedders];
  return [
    ...(generators.length > 0 ? [completeTool(generators)] : []),
    ...(embedders.length > 0 ? [embedTool(embedders)] : []),
    ...(rankers.length > 0 ? [rerankTool(rankers)] : []),
  ];
}

/** The choice among several models; the first where none is named. */
function modelField(names: readonly string[]) {
  return z
    .enum(names as [string, ...string[]])
    .default(names[0]!)
    .describe('The model.');
}

function completeTool(names: readonly string[]): ModelTool {
  const input = z.strictObject({
    prompt: z.string().min(1).describe('What the model is asked.'),
    system: z.string().optional().describe('Instructions before it.'),
    max_tokens: z.int().min(1).optional().describe('Most tokens of the answer.'),
    temperature: z.number().min(0).max(2).optional().describe('0 for the most probable answer.'),
    seed: z.int().min(0).optional().describe('The same seed gives the same answer.'),
    schema: z
      .record(z.string(), z.unknown())
      .optional()
      .describe('JSON schema that the answer has to follow.'),
    model: modelField(names),
  });
  return {
    name: 'complete',
    title: 'Complete',
    description: 'Asks a language model that runs on this machine, and returns its answer.',
    input,
    output: z.object({
      text: z.string(),
      finish_reason: z.string(),
      prompt_tokens: z.int(),
      completion_tokens: z.int(),
    }),
    call: async (args, post, signal) => {
      const { prompt, system, schema, ...rest } = args as z.output<typeof input>;
      const messages = [{ role: 'user', content: prompt }];
      if (system !== undefined) messages.unshift({ role: 'system', content: system });
      const format = schema && { type: 'json_schema', json_schema: { name: 'answer', schema } };
      const body = { ...rest, messages, ...(format && { response_format: format }) };
      const { choices, usage } = (await asked(post('/v1/chat/completions', body, signal))) as {
        choices: [{ message: { content: string | null }; finish_reason: string }];
        usage: { prompt_tokens: number; completion_tokens: number };
      };
      const [{ message, finish_reason }] = choices;
      const text = message.content ?? '';
      const { prompt_tokens, completion_tokens } = usage;
      return { text, structured: { text, finish_reason, prompt_tokens, completion_tokens } };
    },
  };
}

function embedTool(names: readonly string[]): ModelTool {
  const input = z.strictObject({
    texts: z.array(z.string()).min(1).max(MAX_TEXTS).describe('The texts.'),
    model: modelField(names),
  });
  return {
    name: 'embed',
    title: 'Embed',
    description: 'Computes the embedding of each text: texts of a similar meaning have similar vectors.',
    input,
    output: z.object({ embeddings: z.array(z.array(z.number())) }),
    call: async (args, post, signal) => {
      const { texts, model } = args as z.output<typeof input>;
      const { data } = (await asked(post('/v1/embeddings', { input: texts, model }, signal))) as {
        data: { embedding: number[] }[];
      };
      const structured = { embeddings: data.map(({ embedding }) => embedding) };
      return { text: JSON.stringify(structured), structured };
    },
  };
}

function rerankTool(names: readonly string[]): ModelTool {
  const input = z.strictObject({
    query: z.string().min(1).describe('What is looked for.'),
    documents: z.array(z.string()).min(1).max(MAX_TEXTS).describe('The texts that are sorted.'),
    top: z.int().min(1).optional().describe('How many of the best are returned. Default: all.'),
    model: modelField(names),
  });
  return {
    name: 'rerank',
    title: 'Rerank',
    description: 'Sorts documents by how well they answer a query, the best first.',
    input,
    output: z.object({
      results: z.array(z.object({ index: z.int(), score: z.number(), document: z.string() })),
    }),
    call: async (args, post, signal) => {
      const { query, documents, top, model } = args as z.output<typeof input>;
      const body = { query, documents, model, ...(top && { top_n: top }) };
      const { results } = (await asked(post('/v1/rerank', body, signal))) as {
        results: { index: number; relevance_score: number }[];
      };
      const ranked = results.map(({ index, relevance_score: score }) => {
        return { index, score, document: documents[index]! };
      });
      return { text: JSON.stringify(ranked), structured: { results: ranked } };
    },
  };
}

/** The JSON of an answer. @throws Error with the sentence of a refusal */
async function asked(answer: Promise<Response>): Promise<unknown> {
  const response = await answer;
  const json = (await response.json()) as { error?: { message?: string } };
  if (!response.ok) throw new Error(json.error?.message ?? `The answer is HTTP ${response.status}.`);
  return json;
}
