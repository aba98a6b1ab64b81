import { createHash } from 'node:crypto';
import { objectOf } from '../../generation/tools/call-reader.js';
import type { AnswerPart } from '../../generation/tools/types.js';

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

const CLOSERS: Readonly<Record<string, string>> = { '{': '}', '[': ']' };

/**
 * The arguments of a call as an object, which Anthropic's form needs. Where a limit has cut them off, as much of them
 * as is whole:
 *
 *   {"city": "Ur", "days": [1, 2      ->    {"city": "Ur", "days": [1]}
 *
 * Arguments that are no object are none.
 */
export function partialInput(text: string): Record<string, unknown> {
  return objectOf(text) ?? objectOf(wholePart(text)) ?? {};
}

/** The longest beginning after which the open lists and objects can be closed. */
function wholePart(text: string): string {
  const open: string[] = [];
  let isText = false;
  let whole = { end: 0, closers: '' };
  const mark = (end: number) => {
    whole = { end, closers: open.toReversed().join('') };
  };
  for (let i = 0; i < text.length; i++) {
    const character = text[i]!;
    if (isText) {
      if (character === '\\') i++;
      else if (character === '"') isText = false;
    } else if (character === '"') isText = true;
    else if (character in CLOSERS) {
      open.push(CLOSERS[character]!);
      mark(i + 1);
    } else if (character === '}' || character === ']') {
      open.pop();
      mark(i + 1);
    } else if (character === ',') mark(i);
  }
  return text.slice(0, whole.end) + whole.closers;
}
