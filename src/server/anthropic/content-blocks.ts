import { createHash } from 'node:crypto';
import type { AnswerPart } from '../../generation/tools/types.js';
import { partialInput } from './partial-input.js';

/** A block of an answer. */
export type ContentBlock =
  | { type: 'text'; text: string }
  | { type: 'thinking'; thinking: string; signature: string }
  | {
      type: 'tool_use';
      id: string;
      name: string;
      input: Record<string, unknown>;
      caller: { type: 'direct' };
    };

export interface BlockOptions {
  /** Receives an event's type and fields. */
  onEvent: (type: string, fields: object) => void;
  /** Makes the id of a call. */
  newCallId: (name: string) => string;
  /** True where blocks of thinking have no text. */
  omitsThinking: boolean;
}

/** Makes the blocks of a message out of the answer's parts, with their events in Anthropic's order. */
export class ContentBlocks {
  readonly blocks: ContentBlock[] = [];
  readonly #options: BlockOptions;
  /** The last block, while it is being written. */
  #open: ContentBlock | null = null;
  /** Thinking or arguments of the open block. */
  #text = '';

  constructor(options: BlockOptions) {
    this.#options = options;
  }

  get hasCalls(): boolean {
    return this.blocks.some(({ type }) => type === 'tool_use');
  }

  push(parts: readonly AnswerPart[]): void {
    for (const part of parts) {
      switch (part.type) {
        case 'content':
          this.#content(part.text);
          break;
        case 'reasoning':
          this.#reasoning(part.text);
          break;
        case 'call':
          this.#begin({
            type: 'tool_use',
            id: this.#options.newCallId(part.name),
            name: part.name,
            input: {},
            caller: { type: 'direct' },
          });
          break;
        case 'arguments':
          this.#text += part.text;
          this.#delta({ type: 'input_json_delta', partial_json: part.text });
          break;
      }
    }
  }

  /** Ends the open block: another one begins, or the answer has ended. */
  end(): void {
    const block = this.#open;
    if (block === null) return;
    if (block.type === 'tool_use') block.input = partialInput(this.#text);
    else if (block.type === 'thinking') {
      if (!this.#options.omitsThinking) block.thinking = this.#text;
      block.signature = signatureOf(this.#text);
      this.#delta({ type: 'signature_delta', signature: block.signature });
    }
    this.#options.onEvent('content_block_stop', { index: this.blocks.length - 1 });
    this.#open = null;
    this.#text = '';
  }

  #content(text: string): void {
    let block = this.#open;
    if (block?.type !== 'text') {
      block = { type: 'text', text: '' };
      this.#begin(block);
    }
    block.text += text;
    this.#delta({ type: 'text_delta', text });
  }

  #reasoning(text: string): void {
    if (this.#open?.type !== 'thinking') this.#begin({ type: 'thinking', thinking: '', signature: '' });
    this.#text += text;
    if (!this.#options.omitsThinking) this.#delta({ type: 'thinking_delta', thinking: text });
  }

  #begin(block: ContentBlock): void {
    this.end();
    this.blocks.push(block);
    this.#open = block;
    this.#options.onEvent('content_block_start', {
      index: this.blocks.length - 1,
      content_block: { ...block },
    });
  }

  #delta(delta: object): void {
    this.#options.onEvent('content_block_delta', { index: this.blocks.length - 1, delta });
  }
}

/** Signature of thinking: a digest, since clients send it back and nothing has to be kept secret from them. */
function signatureOf(thinking: string): string {
  return createHash('sha256').update(thinking).digest('base64');
}
