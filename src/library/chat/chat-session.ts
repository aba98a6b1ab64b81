import type { ChatMessage } from '../../../models/chat-message.js';
import { InvalidRequestError } from '../../errors/request-errors.js';
import { isStandardSchema, validatedBy } from '../../generation/standard-schema.js';
import { withPictures } from '../given-pictures.js';
import { checkChatInput, checkSendOptions } from '../options/chat-options.js';
import { ChatError } from './chat-error.js';
import { chatTurn, type EndedTurn, type TurnSetting } from './chat-turn.js';
import type {
  ChatAnswer,
  ChatEvent,
  ChatInput,
  ChatSettings,
  ObjectOf,
  PendingCall,
  SendOptions,
} from './chat-types.js';
import { waitingText, withResults } from './pending-calls.js';
import { type SavedChat, savedChat } from './saved-chat.js';

/**
 * A conversation with a model, which `Skein.chat` begins. One turn at a time: a second one is refused while the first is not over. A turn
 * that fails, is aborted or left leaves the conversation as it was before.
 *
 *   const chat = await skein.chat({ system: 'Be brief.', tools: { get_time: tool({ execute: () => new Date() }) } });
 *   const { text } = await chat.send('How late is it?');
 *   for await (const event of chat.stream('And in Oslo?')) if (event.type === 'text') process.stdout.write(event.text);
 */
export class ChatSession {
  readonly #setting: TurnSetting;
  readonly #settings: ChatSettings;
  #messages: readonly ChatMessage[];
  #pending: readonly PendingCall[];
  #isBusy = false;

  /** @param settings those of each answer @param messages what was said before, checked @param pending its calls without results */
  constructor(
    setting: TurnSetting,
    settings: ChatSettings,
    messages: readonly ChatMessage[],
    pending: readonly PendingCall[],
  ) {
    this.#setting = setting;
    this.#settings = settings;
    this.#messages = messages;
    this.#pending = pending;
  }

  /** The conversation so far, as OpenAI's chat has it. */
  get messages(): readonly ChatMessage[] {
    return structuredClone(this.#messages) as ChatMessage[];
  }

  /** Calls that wait for their results, which the next turn has to bring. */
  get pending(): readonly PendingCall[] {
    return structuredClone(this.#pending) as PendingCall[];
  }

  /**
   * Says something and gives the answer, after all calls of functions. Where one has no `execute`, the answer
   * has `pending` calls, and `{ results: [{ id, result }] }` continues with the program's results. Pictures
   * are parts, such as `[{ type: 'text', text: 'What is this?' }, { type: 'image', image: './cat.jpg' }]`.
   * @throws ChatError for a second turn at once, one without results while calls wait for them, and for an object that is cut or not what its schema accepts; the reason of the signal;
   * InvalidRequestError, ContextLengthError, QueueFullError, RequestError, HostClosedError
   */
  async send<const Options extends SendOptions>(
    input: ChatInput,
    options?: Options,
  ): Promise<ChatAnswer<ObjectOf<Options>>> {
    let answer: ChatAnswer<ObjectOf<Options>> | null = null;
    for await (const event of this.stream(input, options)) if (event.type === 'answer') answer = event.answer;
    return answer!;
  }

  /**
   * The same, event by event; the last one has the answer. The turn begins with the first event that is asked for. Leaving the loop ends it.
   * @throws as send
   */
  async *stream<const Options extends SendOptions>(
    input: ChatInput,
    options?: Options,
  ): AsyncGenerator<ChatEvent<ObjectOf<Options>>, void, undefined> {
    checkChatInput(input);
    checkSendOptions(options ?? {});
    this.#checkObject(options ?? {});
    if (this.#isBusy)
      throw new ChatError('This chat is still in a turn; await its answer before the next one.', 'busy');
    this.#isBusy = true;
    const left = new AbortController();
    const { object: schema, signal, ...own }: SendOptions = options ?? {};
    try {
      const turn = chatTurn(this.#setting, await this.#with(input), {
        ...this.#settings,
        ...own,
        ...(schema === undefined ? {} : { guided: { json: schema } }),
        signal: signal === undefined ? left.signal : AbortSignal.any([signal, left.signal]),
      });
      const ended: EndedTurn = yield* turn;
      const object = (
        schema === undefined ? undefined : await objectOf(ended.answer, schema)
      ) as ObjectOf<Options>;
      this.#messages = ended.messages;
      this.#pending = ended.answer.pending;
      yield { type: 'answer', answer: { ...ended.answer, object } };
    } finally {
      this.#isBusy = false;
      left.abort();
    }
  }

  /** The conversation with what is said now. @throws ChatError, InvalidRequestError */
  async #with(input: ChatInput): Promise<ChatMessage[]> {
    if (typeof input === 'object' && 'results' in input)
      return withResults(this.#messages, this.#pending, input.results, this.#setting.maxResultLength);
    if (this.#pending.length > 0) throw new ChatError(waitingText(this.#pending), 'waiting');
    const [message] = await withPictures([{ role: 'user', content: input }]);
    return [...this.#messages, message!];
  }

  /** @throws InvalidRequestError where a turn could end with a call in place of its object */
  #checkObject({ object, toolChoice = this.#settings.toolChoice }: SendOptions): void {
    if (object === undefined || toolChoice === 'none') return;
    for (const [name, { execute }] of this.#setting.tools) {
      if (execute !== undefined) continue;
      const why = `${name} has no execute, so that a call of it would end the turn without the object`;
      throw new InvalidRequestError(
        `object needs functions that are run here: ${why}; give toolChoice 'none' with it.`,
        'object',
      );
    }
  }

  /** The conversation as plain JSON, for `Skein.chat({ saved })`. Functions and settings are not in it. */
  save(): SavedChat {
    return savedChat(this.#setting.model.name, this.#messages);
  }
}

/** The object that an answer is. @throws ChatError */
async function objectOf({ text, finishReason }: EndedTurn['answer'], schema: object): Promise<unknown> {
  if (finishReason !== 'stop') {
    const limit = finishReason === 'length' ? 'maxTokens, or by the context' : 'timeLimitMs';
    throw new ChatError(`The object was cut off by ${limit}, after ${text.length} characters.`, 'cut');
  }
  const value: unknown = JSON.parse(text);
  if (!isStandardSchema(schema)) return value;
  const validated = await validatedBy(schema, value);
  if (!('faults' in validated)) return validated.value;
  throw new ChatError(
    `The object is not what its schema accepts: ${validated.faults.join('; ')}.`,
    'mismatch',
  );
}
