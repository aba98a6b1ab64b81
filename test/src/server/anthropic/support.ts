import { createParser } from 'eventsource-parser';
import type { ChatMessage } from '../../../../models/chat-template.js';
import type { ChatRenderOptions } from '../../../../src/generation/text-model.js';
import { templatedCodec } from '../../support/toy-codec.js';
import { say, type ToyOptions, type ToyServer, toyServer } from '../../support/toy-server.js';

export const PATH = '/v1/messages';

/** An answer as tests read it. */
// biome-ignore lint/suspicious/noExplicitAny: its shape is what is tested.
export type Any = any;

export const HERMES = '{% if tools %}{{ tools }}<tool_call>{% endif %}{{ messages }}';
export const THINKS = '{{ messages }}{% if enable_thinking %}{% endif %}<think></think>';

export interface Toy extends ToyServer {
  /** What the template was given, request by request. */
  rendered: { messages: readonly ChatMessage[]; options: ChatRenderOptions }[];
}

/** A server whose model says a text, and whose template is watched. */
export function server(text: string, template = '{{ messages }}', options: ToyOptions = {}): Toy {
  const rendered: Toy['rendered'] = [];
  const codec = templatedCodec(template);
  const watched: typeof codec = {
    ...codec,
    encodeChat: (messages, asked) => {
      rendered.push({ messages, options: asked });
      return codec.encodeChat(messages, asked);
    },
  };
  const model = { codec: watched, maxInputLen: 4000, maxSeqLen: 5000, ...options.model };
  return { ...toyServer(() => say(text), { ...options, model }), rendered };
}

export const user = (content: unknown) => ({ role: 'user', content });
export const question = { max_tokens: 64, messages: [user('Hi')] };

export async function create(toy: ToyServer, body: object): Promise<Any> {
  const response = await toy.post(PATH, { ...question, ...body });
  const json = await response.json();
  if (response.status !== 200) throw new Error(`${response.status} ${JSON.stringify(json)}`);
  return json;
}

/** The events of a stream, each of which has its type as its name. */
export async function readEvents(response: Response): Promise<Any[]> {
  const events: Any[] = [];
  const parser = createParser({
    onEvent: ({ event, data }) => {
      const json = JSON.parse(data) as { type: string };
      if (json.type !== event) throw new Error(`An event is named ${event}, and says ${data}`);
      events.push(json);
    },
  });
  parser.feed(await response.text());
  return events;
}

export async function stream(toy: ToyServer, body: object): Promise<Any[]> {
  return readEvents(await toy.post(PATH, { ...question, ...body, stream: true }));
}

export async function refusal(toy: ToyServer, body: object, path = PATH): Promise<Any> {
  const response = await toy.post(path, { ...question, ...body });
  return { status: response.status, ...((await response.json()) as Any).error };
}
