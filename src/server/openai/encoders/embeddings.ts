import { INPUT_TYPES_OF_TASKS, type InputType } from '../../../encoding/prompts.js';
import type { VectorType } from '../../../encoding/vector-types.js';
import type { ServedEncoder } from '../../../serving/served-model.js';
import { findEncoder } from '../../answering/find-model.js';
import { embedObserved } from '../../answering/run-encoder.js';
import type { AnsweringServices } from '../../answering/services.js';
import { cacheSaltFor } from '../../web/access/cache-salt.js';
import { jsonAnswer } from '../../web/bodies/json-answer.js';
import { JsonList, JsonObject } from '../../web/bodies/json-parts.js';
import type { Exchange } from '../../web/exchange.js';
import { fieldsOf } from '../../web/field-words.js';
import { embeddingsMemory } from '../../web/memory/memory-estimates.js';
import { inOtherWords } from '../../web/other-words.js';
import type { EmbeddingRequest } from '../schemas/embeddings.js';
import { contradiction, cutSide, oneOf, truncatedTo, usageOf } from './answer-parts.js';
import { vectorWriter, type WrittenVector } from './written-vectors.js';

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

async function embedded(
  context: AnsweringServices,
  request: EmbeddingRequest,
  { signal, terms }: Exchange,
): Promise<{
  model: ServedEncoder;
  rows: readonly Float32Array[];
  written: (row: Float32Array) => WrittenVector;
  promptTokens: number;
}> {
  const written = writerOf(request);
  const model = findEncoder(context, request.model, 'embedding');
  terms.memory.addAnswer(embeddingsMemory(request.input.length, model.outputWidth));
  const options = {
    dimensions: oneOf(request, 'dimensions', 'output_dimension'),
    truncatePromptTokens: truncatedTo(request),
    truncateSide: cutSide(request.truncation_side),
    promptName: request.prompt_name,
    inputType: inputTypeOf(request),
    normalize: oneOf(request, 'normalized', 'normalize'),
    signal,
  };
  const loading = {
    sources: context.pictureSources(terms.caller),
    hold: (bytes: number) => terms.memory.addAnswer(bytes),
    salt: cacheSaltFor(terms.caller, undefined),
  };
  const follow = { observe: context.observe, tally: terms.tally, admit: terms.admit };
  const { embeddings: rows, promptTokens } = await inOtherWords(fieldsAsGiven(request), () =>
    embedObserved(model, request.input, options, follow, loading),
  );
  return { model, rows, written, promptTokens };
}

/** Fields that other APIs name otherwise are called as the request has them. */
function fieldsAsGiven({ dimensions, output_dimension: outputDimension, normalize }: EmbeddingRequest) {
  return fieldsOf('chat', [
    ...(dimensions === undefined && outputDimension !== undefined
      ? ([['dimensions', 'output_dimension']] as const)
      : []),
    ...(normalize === undefined ? ([['normalize', 'normalized']] as const) : []),
  ]);
}

function inputTypeOf({ input_type: given, task }: EmbeddingRequest): InputType | undefined {
  const type = given === 'passage' ? 'document' : given;
  const ofTask = task && INPUT_TYPES_OF_TASKS[task];
  if (type !== undefined && ofTask !== undefined && type !== ofTask)
    throw contradiction('task', 'input_type');
  return type ?? ofTask;
}

/** How embeddings are written: by encoding_format and Voyage's output_dtype, or by Jina's embedding_type, which says both. */
function writerOf(request: EmbeddingRequest): (row: Float32Array) => WrittenVector {
  const { output_dtype: dtype, encoding_format: format, embedding_type: jinas } = request;
  if (jinas === undefined) return vectorWriter(dtype ?? 'float', format === 'base64');
  const type: VectorType = jinas === 'base64' ? 'float' : jinas;
  if (dtype !== undefined && dtype !== type) throw contradiction('embedding_type', 'output_dtype');
  const isBase64 = jinas === 'base64';
  // Clients of OpenAI's API send encoding_format "float" whatever they are asked for.
  if (format === 'base64' && !isBase64) throw contradiction('embedding_type', 'encoding_format');
  return vectorWriter(type, isBase64);
}
