import { problemOf } from '../../problem.js';
import type { Session } from '../../session.js';
import type { AnswerTiming } from '../answer-timing.js';
import { type ChatEnd, type ChatListener, ChatProblem, readData, type TokenLogProb } from '../stream-chat.js';
import type { ResponseRequest } from './response-request.js';
import type { ResponseItem } from './tool-call.js';

/** An event of a stream, as far as the page reads it. */
interface ResponseEvent {
  type: string;
  delta?: string;
  logprobs?: TokenLogProb[];
  item?: ResponseItem;
  message?: string;
  response?: {
    usage?: {
      input_tokens: number;
      output_tokens: number;
      input_tokens_details?: { cached_tokens: number };
    } | null;
    incomplete_details?: { reason: string } | null;
    error?: { message: string } | null;
  };
}

/** One response: how it ended, and its items. */
export interface ResponseEnd extends ChatEnd {
  items: ResponseItem[];
  /** Tokens that the model has written, as the server counted them. */
  tokens: number;
}

export interface ResponseListener extends ChatListener {
  /** A call has ended. */
  onItem(item: ResponseItem): void;
}

/**
 * Asks for a response and reads it as it is written.
 * @throws ChatProblem where the server refuses or fails, or the stream is cut off; the reason of the signal
 */
export async function streamResponse(
  session: Session,
  request: ResponseRequest,
  listener: ResponseListener,
  timing: AnswerTiming,
  signal: AbortSignal,
): Promise<ResponseEnd> {
  const end: ResponseEnd = {
    ...{ finishReason: '', stopReason: null, seed: null, contextTokens: null, tokens: 0 },
    items: [],
  };
  const response = await session.post('v1/responses', { ...request, stream: true }, { signal });
  if (!response.ok) throw new ChatProblem(await problemOf(response));
  await readData(response, (data) => takeEvent(JSON.parse(data) as ResponseEvent, end, listener, timing));
  if (end.finishReason === '') throw new ChatProblem('The stream ended before the answer was whole.');
  return end;
}

function takeEvent(
  event: ResponseEvent,
  end: ResponseEnd,
  listener: ResponseListener,
  timing: AnswerTiming,
): void {
  const { type, delta = '', item, response } = event;
  switch (type) {
    case 'response.output_text.delta':
      timing.notePiece(performance.now());
      if (event.logprobs?.length) listener.onTokens(event.logprobs);
      listener.onContent(delta);
      break;
    case 'response.reasoning_text.delta':
      timing.notePiece(performance.now(), true);
      listener.onReasoning(delta);
      break;
    case 'response.output_item.done':
      end.items.push(item!);
      listener.onItem(item!);
      break;
    case 'response.completed':
    case 'response.incomplete': {
      const { usage, incomplete_details: details } = response!;
      end.finishReason = details ? 'length' : 'stop';
      if (!usage) break;
      timing.prompt.tokens = usage.input_tokens;
      timing.prompt.cached = usage.input_tokens_details?.cached_tokens ?? 0;
      end.tokens = usage.output_tokens;
      end.contextTokens = usage.input_tokens + usage.output_tokens;
      break;
    }
    case 'response.failed':
      throw new ChatProblem(response!.error?.message ?? 'The server failed while it answered.');
    case 'error':
      throw new ChatProblem(event.message ?? 'The server failed while it answered.');
  }
}
