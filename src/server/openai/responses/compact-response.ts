import { imageTokensOf } from '../../../generation/pictures/seen-request.js';
import { findGenerator } from '../../answering/find-model.js';
import { collect } from '../../answering/respond.js';
import { seenMessages } from '../../answering/seen-chat.js';
import { jsonAnswer } from '../../web/bodies/json-answer.js';
import { JsonList, JsonObject } from '../../web/bodies/json-parts.js';
import { ApiError } from '../../web/errors.js';
import type { Exchange } from '../../web/exchange.js';
import type { CompactRequest } from '../schemas/responses.js';
import { summaryOnly } from './compaction.js';
import { sealedState } from './compaction-state.js';
import { chatOf, conversationOf } from './conversation.js';
import { askOf } from './response-ask.js';
import { itemJson } from './response-json.js';
import { newId, responseUsage } from './response-object.js';
import { inResponseWords } from './response-words.js';
import { ownStore, type ResponsesContext } from './responses-context.js';
import { maxRetainedTokens, retainedItems } from './retained-items.js';
import { addKnownTools } from './served-answer.js';
import { SummaryReader, summaryPass } from './summary-pass.js';

/**
 * Answers POST /v1/responses/compact: the items that stand for a conversation from now on. They are the messages that
 * stay as they are, and an item with the model's summary of the rest.
 */
export async function compactResponse(
  context: ResponsesContext,
  request: CompactRequest,
  exchange: Exchange,
): Promise<Response> {
  const { registry, caller, requestId } = exchange.terms;
  const model = findGenerator(context, request.model);
  const maxRetained = maxRetainedTokens(model);
  const conversation = await conversationOf(
    request,
    ownStore(context, exchange.terms),
    maxRetained,
    exchange.warn,
  );
  const { items, stateOf } = summaryOnly(conversation.items);
  if (items.length === 0) {
    const message = "There is nothing to compact: 'input' or 'previous_response_id' is needed.";
    throw new ApiError(400, message, { param: 'input', code: 'missing_required_parameter' });
  }
  return inResponseWords(conversation.tools, () =>
    registry.accept(caller, requestId, async (live) => {
      const id = newId('resp');
      addKnownTools(conversation, request.tools, context.toolServers);
      const ask = askOf(request, conversation.tools);
      const seen = await seenMessages(context, model, chatOf(conversation, items), exchange, 'input');
      const { signal } = exchange;
      const asked = { engine: request, ask: { ...ask, signal }, seen };
      const { plan, run } = await summaryPass(context, model, asked, exchange.terms, live);
      run.addId(id);
      const reader = new SummaryReader(plan, model);
      let finish: string | null = null;
      await collect(run, exchange.signal, (_, piece) => {
        reader.push(piece);
        finish = piece.finishReason;
      });
      checkWhole(finish);
      const encrypted_content = sealedState(stateOf(reader.text));
      const compaction = { type: 'compaction' as const, id: newId('cmp'), encrypted_content };
      const { completionTokens, cachedTokens } = run;
      const promptTokens = plan.promptTokens.length;
      const counts = { promptTokens, completionTokens, cachedTokens, imageTokens: imageTokensOf(plan) };
      return jsonAnswer(
        new JsonObject({
          id,
          object: 'response.compaction',
          created_at: Math.floor(Date.now() / 1000),
          output: JsonList.of([...retainedItems(items, maxRetained), compaction], itemJson),
          usage: responseUsage(counts, reader.reasoningTokens),
        }),
      );
    }),
  );
}

/** @throws ApiError for a summary that was broken off: a conversation would lose what it leaves out. */
function checkWhole(finish: string | null): void {
  if (finish === 'timeout') {
    throw new ApiError(408, 'The limit of time was reached before the summary was whole.', {
      code: 'time_limit',
    });
  }
  if (finish === 'cancelled') throw new ApiError(503, 'The compaction was cancelled.', { code: 'cancelled' });
}
