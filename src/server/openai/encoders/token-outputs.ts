import { givesTokens, type TokenOutput } from '../../../../callbacks/encoder-messages.js';
import type { EncoderInput } from '../../../encoding/encoder-codec.js';
import type { EncoderModel } from '../../../encoding/encoder-model.js';
import {
  embedSparse,
  embedTokens,
  type OfTokens,
  type OnTokens,
  type SparseEmbedding,
  type TokenOptions,
  vectorWidth,
  weighTokens,
} from '../../../encoding/token-outputs.js';
import type { ServedEncoder } from '../../../serving/served-model.js';
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
import { cutSide } from './answer-parts.js';

/** An output of tokens: how it is computed, and the bytes of its answer for a number of tokens. */
interface Output<T> {
  kind: TokenOutput;
  embed: (
    model: EncoderModel,
    inputs: readonly EncoderInput[],
    options: TokenOptions,
    hooks: { onTokens: OnTokens; onAccepted: OnTokens },
  ) => Promise<OfTokens<T>>;
  memoryOf: (tokens: number, model: EncoderModel) => number;
}

const SPARSE: Output<SparseEmbedding> = {
  kind: 'weights',
  embed: embedSparse,
  memoryOf: tokenWeightsMemory,
};
export const VECTORS: Output<Float32Array[]> = {
  kind: 'vectors',
  embed: embedTokens,
  memoryOf: (tokens, model) => embeddingsMemory(tokens, vectorWidth(model)),
};
export const WEIGHTS: Output<Float32Array> = {
  kind: 'weights',
  embed: weighTokens,
  memoryOf: (tokens) => embeddingsMemory(tokens, 1),
};

/** Answers POST /embed_sparse in the form of text-embeddings-inference. */
export async function sparseEmbeddings(
  context: AnsweringServices,
  request: TokenOutputRequest,
  exchange: Exchange,
): Promise<Response> {
  const embeddings = await given(context, request, exchange, SPARSE);
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
  const embeddings = await given(context, request, exchange, VECTORS);
  return jsonAnswer(JsonList.of(embeddings, writtenVectors));
}

/** Vectors of tokens as an answer has them. */
export function writtenVectors(vectors: readonly Float32Array[]): JsonList {
  return JsonList.of(vectors, (vector) => new JsonNumbers(vector));
}

const FIELDS = fieldsOf('chat', [
  ['input', 'inputs'],
  ['truncate_prompt_tokens', 'truncate'],
]);

async function given<T>(
  context: AnsweringServices,
  request: TokenOutputRequest,
  exchange: Exchange,
  output: Output<T>,
): Promise<T[]> {
  const model = findEncoder(context, request.model, 'embedding', (head) => givesTokens(head, output.kind));
  const { inputs, truncate, prompt_name: promptName } = request;
  const options: TokenOptions = {
    promptName,
    truncatePromptTokens: truncate === true ? -1 : undefined,
    truncateSide: cutSide(request.truncation_direction),
  };
  const run = () => ofTokens({ context, exchange, model }, inputs, options, output);
  return (await inOtherWords(FIELDS, run)).embeddings;
}

/** A request for what a model gives of tokens. */
interface Asked {
  context: AnsweringServices;
  exchange: Exchange;
  model: ServedEncoder;
}

/** Computes an output of the tokens of inputs; the request holds memory for its answer before they are computed. */
export function ofTokens<T>(
  { context, exchange, model }: Asked,
  inputs: readonly EncoderInput[],
  options: TokenOptions,
  { embed, memoryOf }: Output<T>,
): Promise<OfTokens<T>> {
  const { signal, terms } = exchange;
  const onTokens = (tokens: number) => terms.memory.addAnswer(memoryOf(tokens, model));
  const followed = { observe: context.observe, tally: terms.tally, admit: terms.admit };
  return observed(model, followed, signal, (onAccepted) =>
    embed(model, inputs, { ...options, signal }, { onTokens, onAccepted }),
  );
}
