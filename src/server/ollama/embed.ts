import { unit } from '../../encoding/embed.js';
import type { ServedEncoder, ServedModel } from '../../serving/served-model.js';
import { embedObserved } from '../answering/run-encoder.js';
import type { AnsweringServices } from '../answering/services.js';
import { jsonAnswer } from '../web/bodies/json-answer.js';
import { JsonList, JsonNumbers, JsonObject } from '../web/bodies/json-parts.js';
import type { Exchange } from '../web/exchange.js';
import { embeddingsMemory } from '../web/memory/memory-estimates.js';
import { withModel } from './borrow.js';
import { notCapable } from './errors.js';
import type { EmbedBody, EmbeddingsBody } from './schemas.js';
import type { OllamaServices } from './services.js';
import { Timings } from './timings.js';

/** Answers POST /api/embed, whose body its schema has validated. Each embedding has length 1. */
export async function embed(
  context: OllamaServices,
  request: EmbedBody,
  exchange: Exchange,
): Promise<Response> {
  const timings = new Timings();
  const { model: asked, dimensions, truncate = true, keep_alive: keepAlive } = request;
  return withModel(context, asked, { keepAlive, signal: exchange.signal }, async (found) => {
    const model = asEmbedder(found, asked);
    timings.noteLoaded();
    const input = request.input.filter((text) => text !== '' || request.input.length > 1);
    const { embeddings, promptTokens } = await rowsOf(
      context,
      model,
      input,
      { dimensions, truncate },
      exchange,
    );
    return jsonAnswer(
      new JsonObject({
        model: asked,
        embeddings: JsonList.of(embeddings, (row) => new JsonNumbers(unit(row))),
        ...timings.sinceBegin(),
        prompt_eval_count: promptTokens,
      }),
    );
  });
}

/** Answers POST /api/embeddings, the older route for one text, whose embedding is as the model gives it. */
export async function embeddings(
  context: OllamaServices,
  request: EmbeddingsBody,
  exchange: Exchange,
): Promise<Response> {
  const { model: asked, prompt = '', keep_alive: keepAlive } = request;
  return withModel(context, asked, { keepAlive, signal: exchange.signal }, async (found) => {
    const model = asEmbedder(found, asked);
    const input = prompt === '' ? [] : [prompt];
    const { embeddings: rows } = await rowsOf(context, model, input, { truncate: true }, exchange);
    return jsonAnswer(new JsonObject({ embedding: new JsonNumbers(rows[0] ?? []) }));
  });
}

function asEmbedder(model: ServedModel, asked: string): ServedEncoder {
  if (model.kind === 'encoder' && model.head.kind === 'embedding') return model;
  throw notCapable(asked, 'embeddings');
}

async function rowsOf(
  context: AnsweringServices,
  model: ServedEncoder,
  input: readonly string[],
  { dimensions, truncate }: { dimensions?: number | undefined; truncate: boolean },
  { signal, terms }: Exchange,
): Promise<{ embeddings: Float32Array[]; promptTokens: number }> {
  if (input.length === 0) return { embeddings: [], promptTokens: 0 };
  terms.memory.addAnswer(embeddingsMemory(input.length, model.outputWidth));
  const options = { dimensions, truncatePromptTokens: truncate ? -1 : undefined, signal };
  return embedObserved(model, input, options, {
    observe: context.observe,
    tally: terms.tally,
    admit: terms.admit,
  });
}
