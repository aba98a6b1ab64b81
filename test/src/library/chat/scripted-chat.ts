import type { ChatSession, ChatSessionOptions } from '../../../../src/index.js';
import { AnsweringModel } from '../../../../src/library/chat/answering-model.js';
import { beginChat } from '../../../../src/library/chat/begin-chat.js';
import type { ServedGenerator } from '../../../../src/serving/served-model.js';
import { FakeEngine, type Step } from '../../support/fake-engine.js';
import { promptText } from '../../support/rendered-codec.js';
import { say, toyModel } from '../../support/toy-server.js';

/** What the model says in each round: a text, or the steps of its engine. */
export type Said = string | readonly Step[];

export const call = (name: string, args: unknown): string =>
  `<tool_call>{"name": "${name}", "arguments": ${typeof args === 'string' ? args : JSON.stringify(args)}}</tool_call>`;

export interface ScriptedChat {
  chat: ChatSession;
  engine: FakeEngine;
  /** The prompts so far, as text. */
  prompts(): string[];
}

/** A chat with a model that says these texts, one for each time it is asked. */
export async function scriptedChat(
  said: readonly Said[],
  options: ChatSessionOptions = {},
  fields: Partial<ServedGenerator> = {},
): Promise<ScriptedChat> {
  const engine = new FakeEngine((_, index) => {
    const one = said[index] ?? 'Nothing more.';
    return typeof one === 'string' ? say(one) : one;
  });
  const model = toyModel(engine, { maxSeqLen: 8000, maxInputLen: 8000, ...fields });
  const chat = await beginChat(new AnsweringModel('toy', model, () => model), options);
  return {
    chat,
    engine,
    prompts: () => engine.requests.map(({ promptTokens }) => promptText(promptTokens as number[])),
  };
}
