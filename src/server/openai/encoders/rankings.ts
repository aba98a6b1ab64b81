import { randomUUID } from 'node:crypto';
import { ranking, type Scores, scorePairs } from '../../../encoding/score.js';
import type { ServedEncoder } from '../../../serving/served-model.js';
import { findEncoder } from '../../answering/find-model.js';
import { type Followed, observed } from '../../answering/run-encoder.js';
import type { AnsweringServices } from '../../answering/services.js';
import { jsonAnswer } from '../../web/bodies/json-answer.js';
import { JsonList, JsonObject } from '../../web/bodies/json-parts.js';
import { ApiError } from '../../web/errors.js';
import type { Exchange } from '../../web/exchange.js';
import type { RerankRequest, ScoreRequest } from '../schemas/rankings.js';
import { oneOf, truncatedTo, usageOf } from './answer-parts.js';

/** Answers POST /v1/rerank, whose body its schema has validated. */
export async function rerank(
  context: AnsweringServices,
  request: RerankRequest,
  exchange: Exchange,
): Promise<Response> {
  const asked = {
    ...request,
    top_n: oneOf(request, 'top_n', 'top_k'),
    truncate_prompt_tokens: truncatedTo(request),
  };
  const { model, documents, order, scores, promptTokens } = await ranked(context, asked, exchange);
  const { return_documents: given } = request;
  const listed = (documentOf: (text: string) => unknown) =>
    JsonList.of(order, (index) => {
      return new JsonObject({
        index,
        document: documentOf(documents[index]!),
        relevance_score: scores[index],
      });
    });
  // Voyage's clients read data, those of the other APIs results; what is not given is no field.
  const data = listed((text) => (given === true ? text : undefined));
  const results = listed((text) => (given === false ? undefined : new JsonObject({ text })));
  return jsonAnswer(
    new JsonObject({
      id: `rerank-${randomUUID()}`,
      object: 'list',
      model: model.id,
      results,
      data,
      usage: usageOf(promptTokens),
    }),
  );
}

/** Documents by how well they answer a query. */
export async function ranked(
  context: AnsweringServices,
  request: Pick<
    RerankRequest,
    'model' | 'query' | 'documents' | 'top_n' | 'truncate_prompt_tokens' | 'instruction' | 'instruct'
  >,
  { signal, terms }: Exchange,
) {
  const model = findEncoder(context, request.model, 'score');
  const followed = { observe: context.observe, tally: terms.tally, admit: terms.admit };
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
  const followed = { observe: context.observe, tally: terms.tally, admit: terms.admit };
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
  request: Pick<ScoreRequest, 'truncate_prompt_tokens' | 'instruction' | 'instruct'>,
  signal: AbortSignal,
  names: { param: string; pair: (index: number) => string },
): Promise<Scores> {
  const instruction = oneOf(request, 'instruction', 'instruct');
  const options = { truncatePromptTokens: request.truncate_prompt_tokens, instruction, signal };
  return observed(model, followed, signal, (onAccepted) =>
    scorePairs(model, pairs, options, names, onAccepted),
  );
}
