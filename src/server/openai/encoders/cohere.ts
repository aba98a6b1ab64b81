import { randomUUID } from 'node:crypto';
import type { EmbedOptions } from '../../../encoding/embed.js';
import { findEncoder } from '../../answering/find-model.js';
import { embedObserved } from '../../answering/run-encoder.js';
import type { AnsweringServices } from '../../answering/services.js';
import { jsonAnswer } from '../../web/bodies/json-answer.js';
import { JsonList, JsonObject } from '../../web/bodies/json-parts.js';
import { ApiError } from '../../web/errors.js';
import type { Exchange } from '../../web/exchange.js';
import { type CallField, fieldsOf } from '../../web/field-words.js';
import { embeddingsMemory } from '../../web/memory/memory-estimates.js';
import { inOtherWords } from '../../web/other-words.js';
import type { CohereEmbedRequest, CohereRerankRequest, CohereType } from '../schemas/cohere.js';
import { contradiction } from './answer-parts.js';
import { ranked } from './rankings.js';
import { vectorWriter } from './written-vectors.js';

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
  const follow = { observe: context.observe, tally: terms.tally, admit: terms.admit };
  const { embeddings: rows, promptTokens } = await inOtherWords(embedFields(request), () =>
    embedObserved(model, texts, options, follow),
  );
  const inType = (type: CohereType) =>
    JsonList.of(rows, type === 'base64' ? vectorWriter('float', true) : vectorWriter(type, false));
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

/** Fields of embeddings by Cohere's names. A text is too long only where truncate says that none is cut. */
function embedFields({ texts, truncate }: CohereEmbedRequest): CallField {
  return fieldsOf('chat', [
    ['input', texts === undefined ? 'inputs' : 'texts'],
    ['truncate_prompt_tokens', truncate === 'NONE' ? 'truncate' : 'max_tokens'],
    ['dimensions', 'output_dimension'],
  ]);
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

const RERANK_FIELDS = fieldsOf('chat', [['truncate_prompt_tokens', 'max_tokens_per_doc']]);

/** Answers POST /v2/rerank: the same in Cohere's form. */
export async function cohereRerank(
  context: AnsweringServices,
  request: CohereRerankRequest,
  exchange: Exchange,
): Promise<Response> {
  // Cohere cuts documents that are too long.
  const asked = { ...request, truncate_prompt_tokens: request.max_tokens_per_doc ?? -1 };
  const { order, scores, documents, promptTokens } = await inOtherWords(RERANK_FIELDS, () =>
    ranked(context, asked, exchange),
  );
  const documentOf = (index: number) =>
    request.return_documents === true ? new JsonObject({ text: documents[index] }) : undefined;
  return jsonAnswer(
    new JsonObject({
      id: randomUUID(),
      results: JsonList.of(order, (index) => {
        return new JsonObject({ index, document: documentOf(index), relevance_score: scores[index] });
      }),
      meta: {
        api_version: { version: '2' },
        billed_units: { search_units: 1 },
        tokens: { input_tokens: promptTokens },
      },
    }),
  );
}
