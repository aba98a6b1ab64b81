import type { TokenRequest } from '../../../../callbacks/token-request.js';
import type { Step } from '../../support/fake-engine.js';
import { templatedCodec } from '../../support/toy-codec.js';
import { listen, say, type ToyServer, toyServer } from '../../support/toy-server.js';

const TEMPLATE = '{% if tools %}{{ tools }}<tool_call>{% endif %}{{ messages }}';

/** A server whose model, toy, knows tools and has room for what agents send: some 40,000 tokens, one a byte. */
export class ScriptedServer {
  readonly toy: ToyServer;
  url = '';
  #close: () => Promise<void> = async () => {};
  #answers: readonly (readonly Step[])[] = [];
  #asked = 0;

  constructor() {
    this.toy = toyServer(() => this.#answers[this.#asked++] ?? say('That was not expected.'), {
      model: {
        codec: templatedCodec(TEMPLATE),
        ...{ maxInputLen: 400_000, maxSeqLen: 500_000, defaultMaxTokens: 100_000 },
      },
    });
  }

  async start(): Promise<void> {
    ({ url: this.url, close: this.#close } = await listen(this.toy));
  }

  close(): Promise<void> {
    return this.#close();
  }

  /** What the model says to the next requests, one after the other. */
  says(...answers: (string | readonly Step[])[]): void {
    this.#answers = answers.map((answer) => (typeof answer === 'string' ? say(answer) : answer));
    this.#asked = 0;
    this.toy.engine.requests.length = 0;
    this.toy.engine.cancelled = 0;
  }

  get requests(): readonly TokenRequest[] {
    return this.toy.engine.requests;
  }

  promptOf(request: number): string {
    const bytes = [...this.requests[request]!.promptTokens].filter((token) => token < 256);
    return Buffer.from(bytes).toString();
  }
}

/** An answer that goes on for longer than any test. */
export const ENDLESS: readonly Step[] = [
  ...say('Once upon a time').slice(0, -1),
  { waitMs: 600_000 },
  { finish: 'stop' },
];

export function call(name: string, args: object): string {
  return `Let me see.\n<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`;
}

/** Most bytes of a prompt that a turn may add: some 200 tokens. */
export const MOST_NEW = 600;

/** Bytes that two prompts begin with. */
export function sharedBytes(one: string, other: string): number {
  const most = Math.min(one.length, other.length);
  let shared = 0;
  while (shared < most && one[shared] === other[shared]) shared++;
  return shared;
}

/** Bytes of a prompt after what it has in common with the one before. */
export const newBytes = (before: string, now: string): number => now.length - sharedBytes(before, now);
