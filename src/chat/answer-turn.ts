import { counted } from '../../base/sentences.js';
import type { ChatMessage } from '../../models/chat-message.js';
import { type Answer, ask, countTokens } from '../asking/ask.js';
import { type Asker, AskingError } from '../asking/asker.js';
import { CHAT_LIMITS } from '../library/chat/begin-chat.js';
import type { FinishedCall } from '../library/chat/chat-types.js';
import { runCalls } from '../library/chat/run-calls.js';
import { plainLine } from '../terminal/plain-text.js';
import type { ChatState, Say } from './chat-state.js';

/** Share of the context to keep free for an answer whose limit is not smaller. */
const ROOM_FOR_ANSWER = 1 / 4;
/** Most characters of a call, and of what it gave, that are shown. */
const MAX_SHOWN = 120;

/** Writes an answer as it comes. */
export interface AnswerOutput {
  write(text: string, kind: 'answer' | 'reasoning'): void;
  end(): void;
}

export interface AnswerTurnOptions {
  asker: Asker;
  output: AnswerOutput;
  signal: AbortSignal;
  say: Say;
}

/**
 * Has the last question answered: the model is asked, its calls are run, and it is asked again with what they gave. Where this fails, or a
 * call is aborted, the question is taken back.
 * @throws AskingError; the signal's reason where a call was running
 */
export async function answerTurn(state: ChatState, options: AnswerTurnOptions): Promise<Answer> {
  const { conversation, tools } = state;
  const { output, signal, say } = options;
  try {
    await makeRoom(state, options);
    for (let round = 0; ; round++) {
      const answer = await askOnce(state, options, round < CHAT_LIMITS.maxRounds);
      output.end();
      if (answer.calls.length === 0 || answer.finishReason === 'cancelled') {
        conversation.answer(answer.text);
        return answer;
      }
      conversation.call(answer.text, answer.calls);
      for await (const run of runCalls(answer.calls, tools.running, { ...CHAT_LIMITS, signal })) {
        // openChatTools takes no function that is not run here.
        if ('pending' in run) continue;
        conversation.result(run.call.id, run.content);
        say(callLine(run.call, run.content));
      }
    }
  } catch (error) {
    output.end();
    conversation.takeBack();
    throw error;
  }
}

/** Asks once; where the conversation is too long for the context, without its beginning. */
async function askOnce(
  state: ChatState,
  { asker, output, signal, say }: AnswerTurnOptions,
  mayCall: boolean,
) {
  const { conversation, settings, tools } = state;
  for (;;) {
    try {
      return await ask(
        asker,
        { messages: conversation.messages, tools: { functions: tools.described, mayCall } },
        { settings, signal, onText: (text, kind) => output.write(text, kind) },
      );
    } catch (error) {
      const isTooLong = error instanceof AskingError && error.apiCode === 'context_length_exceeded';
      if (!isTooLong || !conversation.forgetOldest()) throw error;
      say('the context is full: the oldest question and its answer are forgotten');
    }
  }
}

/** Hides the oldest questions from the model until a good part of the context is free for the answer. */
async function makeRoom(state: ChatState, { asker, signal, say }: AnswerTurnOptions): Promise<void> {
  const { maxSeqLen } = asker;
  const { conversation, settings, tools } = state;
  if (maxSeqLen === null) return;
  const most = typeof settings.max_tokens === 'number' ? settings.max_tokens : Number.POSITIVE_INFINITY;
  const room = Math.min(most, Math.floor(maxSeqLen * ROOM_FOR_ANSWER));
  const described = { functions: tools.described, mayCall: true };
  const fits = async (messages: readonly ChatMessage[]) => {
    const used = await countTokens(asker, { messages, tools: described }, signal);
    return used === null || used + room <= maxSeqLen;
  };
  const hidden = await conversation.makeFit(fits);
  if (hidden > 0)
    say(`the context is full: the oldest of this conversation is forgotten (${counted(hidden, 'question')})`);
}

function callLine({ name, arguments: given, error }: FinishedCall, content: string): string {
  const called = `${name}(${plainLine(JSON.stringify(given) ?? '', MAX_SHOWN)})`;
  return error === null
    ? `${called} gives ${plainLine(content, MAX_SHOWN)}`
    : `${called} fails: ${plainLine(error, MAX_SHOWN)}`;
}
