import { randomInt } from 'node:crypto';
import { findGenerator } from '../../answering/find-model.js';
import type { Caller } from '../../web/access/api-keys.js';
import { ApiError } from '../../web/errors.js';
import type { ExchangeServices } from '../../web/exchange.js';
import { parseBody } from '../../web/parse.js';
import type { RequestTerms } from '../../web/request-terms.js';
import { responseRequestSchema } from '../schemas/responses.js';
import type { Asked } from './asked-response.js';
import { makeInBackground } from './background.js';
import { begin } from './begin-response.js';
import { conversationWith } from './conversation.js';
import type { HeldTask } from './held-task.js';
import { asPrevious, historyOf } from './kept-record.js';
import { toldHistory } from './own-store.js';
import { newId, type ResponseObject } from './response-object.js';
import type { Resumed } from './response-tasks.js';
import { ownStore, type ResponsesContext } from './responses-context.js';
import { maxRetainedTokens } from './retained-items.js';
import { lastWhole } from './stored-size.js';

/** A response that is asked for, with what makes its answer the same at any server: a seed, and an id. */
export function resumable(asked: Asked): Asked {
  const seed = asked.request.seed ?? randomInt(2 ** 31);
  const [request, json] = [
    { ...asked.request, seed },
    { ...(asked.json as object), seed },
  ];
  return { ...asked, request, json, origin: { id: newId('resp'), splicer: null } };
}

/** Stores a task before its client learns that it is accepted. @throws the store's errors */
export async function acceptTask(
  { context, json, conversation, turn }: Asked,
  { run, making }: Awaited<ReturnType<typeof begin>>,
  { name: owner }: Caller,
): Promise<HeldTask> {
  const { input, previous, id, before = [] } = conversation;
  const history = historyOf(previous);
  const place = id === undefined ? null : { id, turnId: turn!.turnId, before };
  const task = { owner, response: making.snapshot(), isCancelled: false, isDiscarded: false };
  try {
    const held = await context.responses.tasks!.accept(task, {
      json: json as object,
      input,
      history,
      conversation: place,
    });
    held.attach(making);
    return held;
  } catch (error) {
    making.discard();
    making.forget();
    await run.consume(() => {}).catch(() => {});
    throw error;
  }
}

/**
 * Continues a response that another server has begun to make in the background.
 * @throws ApiError where it cannot be made now
 */
export async function resumeResponse(
  context: ResponsesContext & ExchangeServices,
  resumed: Resumed,
): Promise<void> {
  const { caller, input: made, origin, told, held } = resumed;
  const { json, input, history, conversation: place } = made;
  const request = parseBody(responseRequestSchema, json, 'ignore', () => {});
  const logError = (error: unknown) =>
    context.log.error({ err: error, response: origin.id }, 'response failed that was gone on with');
  const model = findGenerator(context, request.model);
  const memory = context.openMemory(caller);
  const { requests: registry, requestTimeoutMs: timeLimitMs } = context;
  const terms: RequestTerms = { caller, requestId: origin.id, timeLimitMs, registry, memory };
  try {
    const own = ownStore(context, terms);
    const previous = asPrevious(history);
    const before = place?.before ?? [];
    const lastTold = previous === null ? before.slice(Math.max(0, lastWhole(before))) : toldHistory(previous);
    const parts = { input, previous, stored: place, told: lastTold };
    const warn = (text: string) => context.log.warn({ response: origin.id }, text);
    const conversation = conversationWith(request, parts, maxRetainedTokens(model), warn);
    const turn = place === null ? null : own.conversations.turn(place.id, place.turnId, place.before);
    const asked: Asked = {
      context,
      model,
      request,
      json,
      conversation,
      turn,
      store: own.responses,
      warn,
      origin,
      told,
    };
    await registry.accept(caller, origin.id, async (live) => {
      const { run, making } = await begin(asked, live, terms);
      held.attach(making);
      void makeInBackground({ run, making, memory, logError, held });
    });
  } catch (error) {
    memory.release();
    if (!isFinal(error)) throw error;
    const { message, apiCode } = error;
    const failed = { code: apiCode ?? 'server_error', message } as NonNullable<ResponseObject['error']>;
    const response: ResponseObject = { ...resumed.task.response, status: 'failed', error: failed };
    const { responses } = ownStore(context, terms);
    const keep = () => responses.put({ response, input, previous: asPrevious(history) });
    await held.finish(keep, () => responses.forget(response.id));
  }
}

/** True for what would be refused again. */
function isFinal(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status < 500 && ![404, 408, 429].includes(error.status);
}
