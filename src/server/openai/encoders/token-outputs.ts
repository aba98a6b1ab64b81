import type { EncoderInput } from '../../../encoding/encoder-codec.js';
import type { EncoderModel } from '../../../encoding/encoder-model.js';
import {
  embedSparse,
  embedTokens,
  type OfTokens,
  type OnTokens,
  type TokenOptions,
  vectorWidth,
} from '../../../encoding/token-outputs.js';
import { findEncoder } from '../../answering/find-model.js';
import { observed } from '../../answering/run-encoder.js';
import type { AnsweringServices } from '../../answering/services.js';
import { jsonAnswer } from '../../web/bodies/json-answer.js';
import { JsonList, JsonNumbers } from '../../web/bodies/json-parts.js';
import type { Exchange } from '../../web/exchange.js';
import { fieldsOf } from '../../web/field-words.js';
import { embeddingsMemory, tokenWeightsMemory } from '../../web/memory/memory-estimates.js';
import { inOtherWords } from '../../web/other-words.js';
import type { TokenOutputRequest } from '../schemas/token-outputs.js';

/** Answers POST /embed_sparse in the form of text-embeddings-inference. */
export async function sparseEmbeddings(
  context: AnsweringServices,
  request: TokenOutputRequest,
  exchange: Exchange,
): Promise<Response> {
  const embeddings = await given(context, request, exchange, embedSparse, (tokens) =>
    tokenWeightsMemory(tokens),
  );
  return jsonAnswer(
    JsonList.of(embeddings, ({ indices, values }) =>
      JsonList.of([...indices], (index, i) => ({ index, value: values[i] })),
    ),
  );
}

/** Answers POST /embed_all: a vector of each token. */
export async function embedAll(
  context: AnsweringServices,
  request: TokenOutputRequest,
  exchange: Exchange,
): Promise<Response> {
  const memoryOf = (tokens: number, model: EncoderModel) => embeddingsMemory(tokens, vectorWidth(model));
  const embeddings = await given(context, request, exchange, embedTokens, memoryOf);
  return jsonAnswer(
    JsonList.of(embeddings, (vectors) => JsonList.of(vectors, (vector) => new JsonNumbers(vector))),
  );
}

const FIELDS = fieldsOf('chat', [
  ['input', 'inputs'],
  ['truncate_prompt_tokens', 'truncate'],
]);

type Embed<T> = (
  model: EncoderModel,
  inputs: readonly EncoderInput[],
  options: TokenOptions,
  hooks: { onTokens: OnTokens; onAccepted: OnTokens },
) => Promise<OfTokens<T>>;

/** What a model gives of the tokens of a request. @param memoryOf bytes of the answer for so many tokens, which the request holds before they are computed */
async function given<T>(
  context: AnsweringServices,
  request: TokenOutputRequest,
  { signal, terms }: Exchange,
  embed: Embed<T>,
  memoryOf: (tokens: number, model: EncoderModel) => number,
): Promise<T[]> {
  const model = findEncoder(context, request.model, 'embedding');
  const { inputs, truncate, truncation_direction: side = 'right', prompt_name: promptName } = request;
  const options: TokenOptions = {
    promptName,
    truncatePromptTokens: truncate === true ? -1 : undefined,
    truncateSide: side.toLowerCase() === 'left' ? 'start' : 'end',
    signal,
  };
  const onTokens = (tokens: number) => terms.memory.addAnswer(memoryOf(tokens, model));
  const followed = { observe: context.observe, tally: terms.tally };
  const { embeddings } = await inOtherWords(FIELDS, () =>
    observed(model, followed, signal, (onAccepted) =>
      embed(model, inputs, options, { onTokens, onAccepted }),
    ),
  );
  return embeddings;
}
