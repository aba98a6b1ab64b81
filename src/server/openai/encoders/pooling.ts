import { randomUUID } from 'node:crypto';
import { givesTokens, type TokenOutput } from '../../../../callbacks/encoder-messages.js';
import type { EncoderHead } from '../../../../models/encoder-config.js';
import type { EmbedOptions } from '../../../encoding/embed.js';
import type { OfTokens } from '../../../encoding/token-outputs.js';
import type { ServedEncoder } from '../../../serving/served-model.js';
import { findEncoder } from '../../answering/find-model.js';
import { embedObserved } from '../../answering/run-encoder.js';
import type { AnsweringServices } from '../../answering/services.js';
import { jsonAnswer } from '../../web/bodies/json-answer.js';
import { JsonList, JsonNumbers, JsonObject } from '../../web/bodies/json-parts.js';
import { ApiError } from '../../web/errors.js';
import type { Exchange } from '../../web/exchange.js';
import { fieldsOf } from '../../web/field-words.js';
import { embeddingsMemory } from '../../web/memory/memory-estimates.js';
import { inOtherWords } from '../../web/other-words.js';
import type { PoolingRequest } from '../schemas/pooling.js';
import { contradiction, cutSide, oneOf, usageOf } from './answer-parts.js';
import { classifiedBy } from './classify.js';
import { ofTokens, VECTORS, WEIGHTS, writtenVectors } from './token-outputs.js';
import { base64Of } from './written-vectors.js';

type Task = NonNullable<PoolingRequest['task']>;

/** What a task gives of an input: a row, or a vector of each token. */
type Row = Float32Array | Float32Array[];

/** What a task gives of each input, made when it is written, and the number of tokens of all. */
interface Pooled {
  rows: readonly (() => Row)[];
  promptTokens: number;
}

interface Asked {
  context: AnsweringServices;
  exchange: Exchange;
  model: ServedEncoder;
  request: PoolingRequest;
  task: Task;
}

interface TaskNeeds {
  /** The head that it needs, and what that gives of tokens. */
  head: EncoderHead['kind'];
  tokens?: TokenOutput;
  /** Fields that say nothing of it. */
  not: readonly (keyof PoolingRequest)[];
}

const NOT_OF_LABELS = ['dimensions', 'normalize', 'prompt_name'] as const;
const NOT_OF_TOKENS = ['dimensions', 'normalize', 'use_activation', 'activation'] as const;

const TASKS: Readonly<Record<Task, TaskNeeds>> = {
  embed: { head: 'embedding', not: [] },
  classify: { head: 'classification', not: NOT_OF_LABELS },
  score: { head: 'score', not: NOT_OF_LABELS },
  token_embed: { head: 'embedding', tokens: 'vectors', not: NOT_OF_TOKENS },
  token_classify: { head: 'embedding', tokens: 'weights', not: NOT_OF_TOKENS },
};

/** Answers POST /pooling in vLLM's form. */
export async function pooling(
  context: AnsweringServices,
  request: PoolingRequest,
  exchange: Exchange,
): Promise<Response> {
  const { model, task } = taskOf(context, request);
  refuseOthers(request, task);
  const written = request.encoding_format === 'base64' ? base64 : inNumbers;
  const { rows, promptTokens } = await pooled({ context, exchange, model, request, task });
  return jsonAnswer(
    new JsonObject({
      id: `pool-${randomUUID()}`,
      object: 'list',
      created: Math.floor(Date.now() / 1000),
      model: model.id,
      data: JsonList.of(rows, (row, index) => {
        return new JsonObject({ index, object: 'pooling', data: written(row()) });
      }),
      usage: usageOf(promptTokens),
    }),
  );
}

/** The model that is asked, and its task: the one that is named, or what the model is for. */
function taskOf(context: AnsweringServices, { model: name, task }: PoolingRequest) {
  if (task !== undefined) {
    const { head, tokens } = TASKS[task];
    const isFirst = (own: EncoderHead) => tokens === undefined || givesTokens(own, tokens);
    return { model: findEncoder(context, name, head, isFirst), task };
  }
  const model = findEncoder(context, name, 'any');
  return { model, task: model.head.kind === 'embedding' ? ('embed' as const) : ('classify' as const) };
}

function refuseOthers(request: PoolingRequest, task: Task): void {
  const other = TASKS[task].not.find((field) => request[field] !== undefined);
  if (other === undefined) return;
  throw new ApiError(400, `'${other}' is not for the task ${task}.`, { param: other, code: 'invalid_value' });
}

async function pooled(asked: Asked): Promise<Pooled> {
  const { context, exchange, model, request, task } = asked;
  const { input, prompt_name: promptName } = request;
  const cut = {
    truncatePromptTokens: request.truncate_prompt_tokens,
    truncateSide: cutSide(request.truncation_side),
  };
  if (task === 'embed') return embedded(asked, { ...cut, promptName });
  if (task === 'token_embed') return kept(await ofTokens(asked, input, { ...cut, promptName }, VECTORS));
  if (task === 'token_classify') return kept(await ofTokens(asked, input, { ...cut, promptName }, WEIGHTS));
  const options = { ...cut, rawScores: oneOf(request, 'use_activation', 'activation') === false };
  const { classified } = await classifiedBy(context, { model: model.id }, input, options, exchange);
  const { rows, scoresOf, promptTokens } = classified;
  return { rows: rows.map((row) => () => scoresOf(row)), promptTokens };
}

async function embedded(
  { context, exchange, model, request }: Asked,
  options: EmbedOptions,
): Promise<Pooled> {
  const { signal, terms } = exchange;
  const activates = oneOf(request, 'use_activation', 'activation');
  const { normalize = activates } = request;
  if (activates !== undefined && normalize !== activates) throw contradiction('normalize', 'use_activation');
  terms.memory.addAnswer(embeddingsMemory(request.input.length, model.outputWidth));
  const asked = { ...options, dimensions: request.dimensions, normalize, signal };
  const follow = { observe: context.observe, tally: terms.tally, admit: terms.admit };
  const names = fieldsOf('chat', request.normalize === undefined ? [['normalize', 'use_activation']] : []);
  return kept(await inOtherWords(names, () => embedObserved(model, request.input, asked, follow)));
}

function kept({ embeddings, promptTokens }: OfTokens<Row>): Pooled {
  return { rows: embeddings.map((row) => () => row), promptTokens };
}

function inNumbers(row: Row): JsonNumbers | JsonList {
  return row instanceof Float32Array ? new JsonNumbers(row) : writtenVectors(row);
}

/** Base64 of a row, or of concatenated vectors. */
function base64(row: Row): string {
  if (row instanceof Float32Array) return base64Of(row);
  const width = row[0]?.length ?? 0;
  const all = new Float32Array(row.length * width);
  for (const [i, vector] of row.entries()) all.set(vector, i * width);
  return base64Of(all);
}
