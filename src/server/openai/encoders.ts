import { randomUUID } from 'node:crypto';
import type { EmbedOptions } from '../../encoding/embed.js';
import { ranking, type Scores, scorePairs } from '../../encoding/score.js';
import { vectorOfType } from '../../encoding/vector-types.js';
import type { ServedEncoder } from '../../serving/served-model.js';
import { findEncoder } from '../answering/find-model.js';
import { embedObserved, type Followed, observed } from '../answering/run-encoder.js';
import type { AnsweringServices } from '../answering/services.js';
import { jsonAnswer } from '../web/bodies/json-answer.js';
import { JsonList, JsonNumbers, JsonObject } from '../web/bodies/json-parts.js';
import { ApiError } from '../web/errors.js';
import type { Exchange } from '../web/exchange.js';
import { embeddingsMemory } from '../web/memory/memory-estimates.js';
import type {
  CohereEmbedRequest,
  CohereRerankRequest,
  CohereType,
  EmbeddingRequest,
  RerankRequest,
  ScoreRequest,
} from './schemas/encoders.js';

/** An embedding as an answer writes it. */
type WrittenRow = string | JsonNumbers;

/** Answers POST /v1/embeddings, whose body its schema has validated. */
export async function embeddings(
  context: AnsweringServices,
  request: EmbeddingRequest,
  exchange: Exchange,
): Promise<Response> {
  const { model, rows, written, promptTokens } = await embedded(context, request, exchange);
  return jsonAnswer(
    new JsonObject({
      object: 'list',
      data: JsonList.of(rows, (row, index) => {
        return new JsonObject({ object: 'embedding', index, embedding: written(row) });
      }),
      model: model.id,
      usage: usageOf(promptTokens),
    }),
  );
}

/** Answers POST /pooling: the same in vLLM's form. */
export async function pooling(
  context: AnsweringServices,
  request: EmbeddingRequest,
  exchange: Exchange,
): Promise<Response> {
  const { model, rows, written, promptTokens } = await embedded(context, request, exchange);
  return jsonAnswer(
    new JsonObject({
      id: `pool-${randomUUID()}`,
      object: 'list',
      created: Math.floor(Date.now() / 1000),
      model: model.id,
      data: JsonList.of(rows, (row, index) => {
        return new JsonObject({ index, object: 'pooling', data: written(row) });
      }),
      usage: usageOf(promptTokens),
    }),
  );
}

/** Answers POST /classify. @throws ApiError, as no model that is loaded here has labels. */
export function classify(): never {
  throw new ApiError(
    400,
    'No model of this server classifies texts: that needs a head with a score for each of several labels, and this server ' +
      'loads heads with one score (/v1/score, /v1/rerank) or none (/v1/embeddings).',
    { param: 'model', code: 'model_not_supported' },
  );
}

async function embedded(
  context: AnsweringServices,
  request: EmbeddingRequest,
  { signal, terms }: Exchange,
): Promise<{
  model: ServedEncoder;
  rows: readonly Float32Array[];
  written: (row: Float32Array) => WrittenRow;
  promptTokens: number;
}> {
  const model = findEncoder(context, request.model, 'embedding');
  terms.memory.addAnswer(embeddingsMemory(request.input.length, model.outputWidth));
  const options = {
    dimensions: oneOf(request, 'dimensions', 'output_dimension'),
    truncatePromptTokens: truncatedTo(request),
    promptName: request.prompt_name,
    inputType: request.input_type === 'passage' ? 'document' : request.input_type,
    signal,
  } as const;
  const follow = { observe: context.observe, tally: terms.tally };
  const { embeddings: rows, promptTokens } = await embedObserved(model, request.input, options, follow);
  const { output_dtype: type = 'float', encoding_format: format } = request;
  const written = (row: Float32Array) => {
    const vector = vectorOfType(row, type);
    return format === 'base64' ? base64(vector) : new JsonNumbers(vector);
  };
  return { model, rows, written, promptTokens };
}

/** What truncate_prompt_tokens says, or Voyage's and text-embeddings-inference's words for "to the model's limit". */
function truncatedTo(request: EmbeddingRequest): number | undefined {
  const cuts = oneOf(request, 'truncation', 'truncate');
  const { truncate_prompt_tokens: tokens = cuts ? -1 : undefined } = request;
  if (cuts === false && tokens !== undefined) throw contradiction('truncation', 'truncate_prompt_tokens');
  return tokens;
}

/** The value of a field that has two names. @throws ApiError where both are given and differ */
function oneOf<T, A extends keyof T & string, B extends keyof T & string>(
  request: T,
  a: A,
  b: B,
): T[A] | T[B] {
  const { [a]: first, [b]: second } = request;
  if (first !== undefined && second !== undefined && (first as unknown) !== second) throw contradiction(b, a);
  return first ?? second;
}

function contradiction(field: string, other: string): ApiError {
  return new ApiError(400, `'${field}' contradicts '${other}': give one of them.`, {
    param: field,
    code: 'invalid_value',
  });
}

/** Types of inputs by Cohere's names. */
const TYPES_OF_COHERE = {
  search_query: 'query',
  search_document: 'document',
  classification: 'classification',
  clustering: 'clustering',
} as const;

/** Answers POST /v2/embed: embeddings in Cohere's form, each in all types that are asked for. */
export async function cohereEmbed(
  context: AnsweringServices,
  request: CohereEmbedRequest,
  { signal, terms }: Exchange,
): Promise<Response> {
  const texts = textsOf(request);
  const model = findEncoder(context, request.model, 'embedding');
  const { embedding_types: types = ['float'], truncate = 'END', max_tokens: maxTokens } = request;
  if (truncate === 'NONE' && maxTokens !== undefined) throw contradiction('max_tokens', 'truncate');
  const distinct = [...new Set(types)];
  terms.memory.addAnswer(embeddingsMemory(distinct.length * texts.length, model.outputWidth));
  const options: EmbedOptions & { signal: AbortSignal } = {
    dimensions: request.output_dimension,
    truncatePromptTokens: truncate === 'NONE' ? undefined : Math.min(maxTokens ?? Infinity, model.maxSeqLen),
    truncateSide: truncate === 'START' ? 'start' : 'end',
    inputType: request.input_type && TYPES_OF_COHERE[request.input_type],
    signal,
  };
  const follow = { observe: context.observe, tally: terms.tally };
  const { embeddings: rows, promptTokens } = await embedObserved(model, texts, options, follow);
  const inType = (type: CohereType) =>
    JsonList.of(rows, (row) => (type === 'base64' ? base64(row) : new JsonNumbers(vectorOfType(row, type))));
  return jsonAnswer(
    new JsonObject({
      id: randomUUID(),
      embeddings: new JsonObject(Object.fromEntries(distinct.map((type) => [type, inType(type)]))),
      texts: JsonList.of(texts, (text) => text),
      meta: {
        api_version: { version: '2' },
        billed_units: { input_tokens: promptTokens },
      },
      response_type: 'embeddings_by_type',
    }),
  );
}

/** The texts of a request in Cohere's form; the parts of an input are one text. */
function textsOf({ texts, inputs }: CohereEmbedRequest): readonly string[] {
  if (texts !== undefined && inputs !== undefined) throw contradiction('inputs', 'texts');
  const given = texts ?? inputs?.map(({ content }) => content.map(({ text }) => text).join('\n'));
  if (given !== undefined) return given;
  throw new ApiError(400, "The body must have 'texts' or 'inputs'.", {
    param: 'texts',
    code: 'missing_required_parameter',
  });
}

/** Answers POST /v1/rerank, whose body its schema has validated. */
export async function rerank(
  context: AnsweringServices,
  request: RerankRequest,
  exchange: Exchange,
): Promise<Response> {
  const { model, documents, order, scores, promptTokens } = await ranked(context, request, exchange);
  const withDocuments = request.return_documents !== false;
  const results = JsonList.of(order, (index) => {
    const document = withDocuments ? new JsonObject({ text: documents[index] }) : undefined;
    return new JsonObject({ index, document, relevance_score: scores[index] });
  });
  return jsonAnswer(
    new JsonObject({
      id: `rerank-${randomUUID()}`,
      object: 'rerank',
      model: model.id,
      results,
      usage: usageOf(promptTokens),
    }),
  );
}

/** Answers POST /v2/rerank: the same in Cohere's form. */
export async function cohereRerank(
  context: AnsweringServices,
  request: CohereRerankRequest,
  exchange: Exchange,
): Promise<Response> {
  // Cohere cuts documents that are too long.
  const asked = { ...request, truncate_prompt_tokens: request.max_tokens_per_doc ?? -1 };
  const { order, scores, promptTokens } = await ranked(context, asked, exchange);
  return jsonAnswer(
    new JsonObject({
      id: randomUUID(),
      results: JsonList.of(order, (index) => ({ index, relevance_score: scores[index] })),
      meta: {
        api_version: { version: '2' },
        billed_units: { search_units: 1 },
        tokens: { input_tokens: promptTokens },
      },
    }),
  );
}

/** Documents by how well they answer a query. */
async function ranked(
  context: AnsweringServices,
  request: Pick<RerankRequest, 'model' | 'query' | 'documents' | 'top_n' | 'truncate_prompt_tokens'>,
  { signal, terms }: Exchange,
) {
  const model = findEncoder(context, request.model, 'score');
  const followed = { observe: context.observe, tally: terms.tally };
  const documents = request.documents.map((one) => (typeof one === 'string' ? one : one.text));
  const pairs = documents.map((text) => [request.query, text] as const);
  const names = { param: 'documents', pair: (i: number) => `document ${i} with the query` };
  const { scores, promptTokens } = await scored(model, followed, pairs, request, signal, names);
  return { model, documents, order: ranking(scores, request.top_n), scores, promptTokens };
}

/** Answers POST /v1/score, whose body its schema has validated. */
export async function score(
  context: AnsweringServices,
  request: ScoreRequest,
  { signal, terms }: Exchange,
): Promise<Response> {
  const model = findEncoder(context, request.model, 'score');
  const followed = { observe: context.observe, tally: terms.tally };
  const { text_1: first, text_2: second } = request;
  if (first.length !== 1 && first.length !== second.length) {
    throw new ApiError(
      400,
      `'text_1' must have one text, or as many as 'text_2' has (${second.length}), but it has ${first.length}.`,
      { param: 'text_1', code: 'invalid_value' },
    );
  }
  const pairs = second.map((text, i) => [first.length === 1 ? first[0]! : first[i]!, text] as const);
  const names = { param: 'text_2', pair: (i: number) => `pair ${i}` };
  const { scores, promptTokens } = await scored(model, followed, pairs, request, signal, names);
  return jsonAnswer(
    new JsonObject({
      id: `score-${randomUUID()}`,
      object: 'list',
      created: Math.floor(Date.now() / 1000),
      model: model.id,
      data: JsonList.of(scores, (value, index) => ({ index, object: 'score', score: value })),
      usage: usageOf(promptTokens),
    }),
  );
}

function scored(
  model: ServedEncoder,
  followed: Followed,
  pairs: readonly (readonly [string, string])[],
  request: { truncate_prompt_tokens?: number | undefined },
  signal: AbortSignal,
  names: { param: string; pair: (index: number) => string },
): Promise<Scores> {
  const options = { truncatePromptTokens: request.truncate_prompt_tokens, signal };
  return observed(model, followed, signal, (onAccepted) =>
    scorePairs(model, pairs, options, names, onAccepted),
  );
}

/** Base64 of a vector: bytes, or 32-bit floats that are little-endian on every machine. */
function base64(row: Float32Array | Int8Array | Uint8Array): string {
  if (!(row instanceof Float32Array)) return Buffer.from(row.buffer).toString('base64');
  const bytes = Buffer.alloc(4 * row.length);
  for (const [i, value] of row.entries()) bytes.writeFloatLE(value, 4 * i);
  return bytes.toString('base64');
}

function usageOf(promptTokens: number) {
  return { prompt_tokens: promptTokens, total_tokens: promptTokens };
}
