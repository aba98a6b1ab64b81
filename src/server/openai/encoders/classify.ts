import { randomUUID } from 'node:crypto';
import {
  bestLabels,
  type Classified,
  type ClassifiedInput,
  type ClassifyOptions,
  classify,
  greatestOf,
  labelsOf,
} from '../../../encoding/classify.js';
import type { ServedEncoder } from '../../../serving/served-model.js';
import { findEncoder } from '../../answering/find-model.js';
import { observed } from '../../answering/run-encoder.js';
import type { AnsweringServices } from '../../answering/services.js';
import { jsonAnswer } from '../../web/bodies/json-answer.js';
import { JsonList, JsonNumbers, JsonObject } from '../../web/bodies/json-parts.js';
import type { Exchange } from '../../web/exchange.js';
import { fieldsOf } from '../../web/field-words.js';
import { labelScoresMemory } from '../../web/memory/memory-estimates.js';
import { inOtherWords } from '../../web/other-words.js';
import type { ClassifyRequest, PredictRequest } from '../schemas/classify.js';
import { cutSide, oneOf, usageOf } from './answer-parts.js';

/** Answers POST /classify in vLLM's form, with the names of the labels. */
export async function classifyTexts(
  context: AnsweringServices,
  request: ClassifyRequest,
  exchange: Exchange,
): Promise<Response> {
  const options = {
    truncatePromptTokens: request.truncate_prompt_tokens,
    truncateSide: cutSide(request.truncation_side),
    rawScores: oneOf(request, 'use_activation', 'activation') === false,
  };
  const { model, classified } = await classifiedBy(context, request, request.input, options, exchange);
  const { labels, rows, scoresOf, promptTokens } = classified;
  return jsonAnswer(
    new JsonObject({
      id: `classify-${randomUUID()}`,
      object: 'list',
      created: Math.floor(Date.now() / 1000),
      model: model.id,
      labels: JsonList.of(labels, (label) => label),
      data: JsonList.of(rows, (row, index) => {
        const probs = new JsonNumbers(scoresOf(row));
        return new JsonObject({ index, label: labels[greatestOf(row)], probs, num_classes: row.length });
      }),
      usage: usageOf(promptTokens),
    }),
  );
}

const PREDICT_FIELDS = fieldsOf('chat', [
  ['input', 'inputs'],
  ['truncate_prompt_tokens', 'truncate'],
]);

/** Answers POST /predict in the form of text-embeddings-inference: the labels of each text, the likeliest first. */
export async function predict(
  context: AnsweringServices,
  request: PredictRequest,
  exchange: Exchange,
): Promise<Response> {
  const { inputs, truncate } = request;
  const options = {
    truncatePromptTokens: truncate === true ? -1 : undefined,
    truncateSide: cutSide(request.truncation_direction),
    rawScores: request.raw_scores,
  };
  const texts = inputs.items.map((item) => (item.length === 1 ? item[0]! : ([item[0]!, item[1]!] as const)));
  const { classified } = await inOtherWords(PREDICT_FIELDS, () =>
    classifiedBy(context, request, texts, options, exchange),
  );
  const { labels, rows, scoresOf } = classified;
  const written = (row: Float32Array) => {
    const scores = scoresOf(row);
    return JsonList.of(bestLabels(scores), (i) => ({ score: scores[i], label: labels[i] }));
  };
  return jsonAnswer(inputs.single ? written(rows[0]!) : JsonList.of(rows, written));
}

export async function classifiedBy(
  context: AnsweringServices,
  { model: name }: { model?: string | undefined },
  inputs: readonly ClassifiedInput[],
  options: ClassifyOptions,
  { signal, terms }: Exchange,
): Promise<{ model: ServedEncoder; classified: Classified }> {
  const model = findEncoder(context, name, 'classification');
  terms.memory.addAnswer(labelScoresMemory(inputs.length, labelsOf(model.head) ?? []));
  const follow = { observe: context.observe, tally: terms.tally, admit: terms.admit };
  const classified = await observed(model, follow, signal, (onAccepted) =>
    classify(model, inputs, { ...options, signal }, onAccepted),
  );
  return { model, classified };
}
