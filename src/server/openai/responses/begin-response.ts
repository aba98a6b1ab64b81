import { type AskedServer, askedServers } from '../../answering/asked-servers.js';
import { seenMessages } from '../../answering/seen-chat.js';
import { type EnginePass, SeveralPasses } from '../../answering/several-passes.js';
import { timeLimitOf } from '../../answering/time-left.js';
import { ToolRounds, toolLoop } from '../../answering/tool-rounds.js';
import type { LiveRequest } from '../../web/request-registry.js';
import type { RequestTerms } from '../../web/request-terms.js';
import { approvedCalls } from './approvals.js';
import type { Asked } from './asked-response.js';
import { chatOf } from './conversation.js';
import { ResponseMaking } from './response-making.js';
import { hasLogProbs, type Pass, ResponsePasses } from './response-passes.js';
import { ServedAnswer } from './served-answer.js';

/**
 * Starts the passes that make a response. Without tools of servers the first is made at once, so that a refusal is one of
 * the request; with them their servers are asked before it.
 * @throws ApiError and as planChat.
 */
export async function begin(
  given: Asked,
  live: LiveRequest,
  terms: RequestTerms,
): Promise<{ run: SeveralPasses; making: ResponseMaking }> {
  const { context, model, request, conversation, turn, store, warn } = given;
  const servers = askedServers(request.tools, context.toolServers);
  const approved = approvedCalls(conversation, servers);
  const exchange = { signal: given.signal, terms };
  const seen = await seenMessages(
    context,
    model,
    chatOf(conversation, conversation.items),
    exchange,
    'input',
  );
  const asked = { ...given, seen };
  // The request ends with its last pass.
  const pass = { terms, live: { ...live, release: () => {} }, sinceMs: performance.now() };
  const rounds = servers.length === 0 ? null : roundsOf(asked, servers, pass);
  async function* passes(): AsyncGenerator<EnginePass, void> {
    const made = new ResponsePasses(asked, making, pass);
    if (rounds === null) {
      if (yield* made.before()) yield (await made.answer(true, true))!;
      return;
    }
    const tell = () => run.tell();
    const { memory } = terms;
    const ofAnswer = { servers, approved, conversation, making, rounds, passes: made };
    yield* toolLoop(rounds, new ServedAnswer({ ...ofAnswer, memory, tell, warn }), tell);
  }
  const onOver = () => {
    rounds?.close();
    live.release();
  };
  const run = new SeveralPasses(passes(), () => rounds?.abort(), onOver);
  const making = new ResponseMaking({
    ...{ model, request, conversation, run, store, turn },
    hasLogProbs: hasLogProbs(request),
    ...{ origin: asked.origin, told: asked.told },
  });
  live.addId(making.id);
  if (rounds !== null) return { run, making };
  try {
    await run.prepare();
  } catch (error) {
    making.forget();
    throw error;
  }
  return { run, making };
}

/** What its servers may cost a response. */
function roundsOf({ context, model, request }: Asked, servers: readonly AskedServer[], pass: Pass) {
  return new ToolRounds({
    servers,
    live: pass.live,
    timeLimitMs: timeLimitOf(request, pass.terms),
    callTimeoutMs: context.toolServers!.callTimeoutMs,
    maxCalls: request.max_tool_calls,
    maxResult: model.maxSeqLen,
  });
}
