import type { ChatMessage } from '../../../models/chat-template.js';
import type { ChatRenderOptions, Detokenizer, TextCodec } from '../../../src/generation/text-model.js';

/** Tokens 0 to 255 are bytes; this one ends an answer. */
export const END_TOKEN = 256;
export const BOS_TOKEN = 257;
export const TOY_VOCAB = 258;

const encoder = new TextEncoder();

/** One token per byte. */
export function bytesOf(text: string): number[] {
  return Array.from(encoder.encode(text));
}

/** A tokenizer whose tokens are single bytes, so that every character outside ASCII spans tokens. */
export const toyCodec: TextCodec = {
  encodeText: (text) => [BOS_TOKEN, ...bytesOf(text)],
  encodePiece: bytesOf,
  encodeChat: (messages, options) => [BOS_TOKEN, ...bytesOf(render(messages, options))],
  createDetokenizer: ({ skipSpecialTokens }) => new ToyDetokenizer(skipSpecialTokens),
  tokenBytes: (token) => (token < 256 ? Uint8Array.of(token) : encoder.encode(`<${token}>`)),
};

function render(messages: readonly ChatMessage[], options: ChatRenderOptions): string {
  const turns = messages.map((message, index) => {
    const open = options.continueFinalMessage && index === messages.length - 1;
    return `<${message.role}>${contentText(message)}${open ? '' : '</>'}`;
  });
  return turns.join('') + (options.addGenerationPrompt ? '<assistant>' : '');
}

function contentText({ content }: ChatMessage): string {
  return typeof content === 'string' ? content : (content ?? []).map((part) => part.text).join('\n');
}

class ToyDetokenizer implements Detokenizer {
  readonly #skipSpecialTokens: boolean;
  readonly #decoder = new TextDecoder();

  constructor(skipSpecialTokens: boolean) {
    this.#skipSpecialTokens = skipSpecialTokens;
  }

  push(tokens: Iterable<number>): string {
    let text = '';
    for (const token of tokens) {
      if (token >= 256 && this.#skipSpecialTokens) continue;
      text += this.#decoder.decode(toyCodec.tokenBytes(token), { stream: true });
    }
    return text;
  }

  flush(): string {
    return this.#decoder.decode();
  }
}
