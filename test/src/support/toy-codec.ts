import type { ChatMessage } from '../../../models/chat-template.js';
import type {
  ChatRenderOptions,
  Detokenizer,
  DetokenizerOptions,
  TextCodec,
} from '../../../src/generation/text-model.js';

/** Tokens 0 to 255 are bytes; this one ends an answer. */
export const END_TOKEN = 256;
export const BOS_TOKEN = 257;
export const TOY_VOCAB = 258;

const encoder = new TextEncoder();

/** Tokens of a text: one per byte. */
export function bytesOf(text: string): number[] {
  return Array.from(encoder.encode(text));
}

/** A tokenizer whose tokens are single bytes, so that every character outside ASCII spans tokens. */
export const toyCodec: TextCodec = {
  encodeText: (text) => [BOS_TOKEN, ...bytesOf(text)],
  encodePiece: bytesOf,
  encodeChat: (messages, options) => [
    ...(options.addSpecialTokens ? [BOS_TOKEN] : []),
    BOS_TOKEN,
    ...bytesOf(render(messages, options)),
  ],
  createDetokenizer: (options) => new ToyDetokenizer(options),
  tokenEntry: (token) => (token < 256 ? String.fromCharCode(token) : token < TOY_VOCAB ? `<${token}>` : null),
  tokenBytes: (token) => (token < 256 ? Uint8Array.of(token) : encoder.encode(`<${token}>`)),
};

/** The same with a chat template, which is never rendered but shows what the model knows. */
export function templatedCodec(templateSource: string): TextCodec {
  return { ...toyCodec, templateSource };
}

function render(messages: readonly ChatMessage[], options: ChatRenderOptions): string {
  const turns = messages.map((message, index) => {
    const open = options.continueFinalMessage && index === messages.length - 1;
    return `<${message.role}>${contentText(message)}${open ? '' : '</>'}`;
  });
  const tools = options.tools === undefined ? '' : `<tools>${JSON.stringify(options.tools)}</>`;
  const { begin = '', gap = '', text = '' } = options.begunReasoning ?? {};
  const begun = begin + gap + text;
  return tools + turns.join('') + (options.addGenerationPrompt ? '<assistant>' : '') + begun;
}

function contentText({ content }: ChatMessage): string {
  return typeof content === 'string' ? content : (content ?? []).map((part) => part.text).join('\n');
}

class ToyDetokenizer implements Detokenizer {
  readonly #options: DetokenizerOptions;
  readonly #decoder = new TextDecoder();

  constructor(options: DetokenizerOptions) {
    this.#options = options;
  }

  push(tokens: Iterable<number>): string {
    let text = '';
    for (const token of tokens) {
      if (token >= 256 && this.#options.skipSpecialTokens) continue;
      text += this.#decoder.decode(toyCodec.tokenBytes(token), { stream: true });
    }
    return text;
  }

  flush(): string {
    return this.#decoder.decode();
  }
}
