import type { Session } from '../../session.js';
import type { AnswerTiming } from '../answer-timing.js';
import { type ChatEnd, ChatProblem, problemWith } from '../stream-chat.js';
import type { ResponseRequest } from './response-request.js';
import { type ResponseListener, streamResponse } from './stream-response.js';
import type { ApprovalRequest, ResponseItem } from './tool-call.js';

/** Answers with calls that one question may have. */
export const MAX_ROUNDS = 16;

export interface ToolListener extends ResponseListener {
  /** Shows a call and asks the reader whether it may run. @throws the reason of the signal */
  approve(request: ApprovalRequest, signal: AbortSignal): Promise<boolean>;
}

/**
 * Asks for an answer with tools: the server runs a call when the reader has let it, and the model goes on with what it gave.
 * @param signal stops the answer; the text so far stays.
 * @throws ChatProblem where the server refuses, fails, or is cut off before the end.
 */
export async function answerWithTools(
  session: Session,
  request: ResponseRequest,
  listener: ToolListener,
  timing: AnswerTiming,
  signal: AbortSignal,
): Promise<ChatEnd> {
  const input = [...request.input];
  let tokens = 0;
  try {
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const end = await streamResponse(session, { ...request, input }, listener, timing, signal);
      tokens += end.tokens;
      timing.noteTokens(tokens);
      const asked = end.items.filter((item): item is ApprovalRequest => item.type === 'mcp_approval_request');
      if (asked.length === 0) return end;
      input.push(...end.items);
      for (const call of asked) input.push(await answerTo(call, listener, signal));
    }
  } catch (error) {
    if (signal.aborted) return { finishReason: 'aborted', stopReason: null, seed: null, contextTokens: null };
    throw problemWith(timing, error);
  }
  throw new ChatProblem(
    `The model has called tools in ${MAX_ROUNDS} answers in a row, and has not come to an end.`,
  );
}

async function answerTo(
  call: ApprovalRequest,
  listener: ToolListener,
  signal: AbortSignal,
): Promise<ResponseItem> {
  const approve = await listener.approve(call, signal);
  return { type: 'mcp_approval_response', approval_request_id: call.id, approve };
}
