import type { Token, Tokens } from 'marked';
import { blocksOf } from '../../../../texts/markdown-blocks.js';
import { type CodeBlock, codeBlock } from './code-block.js';
import { blockNodes } from './markdown-nodes.js';

/**
 * Shows growing text as Markdown. Only the last block can still change its meaning, so earlier blocks are made once,
 * and their text is forgotten:
 *
 *   # Title          made            the text of these is not read again
 *   A paragraph.     made
 *   - item one       read again,     and its nodes replaced, at each render
 *   - it
 */
export class MarkdownView {
  readonly #root: HTMLElement;
  readonly #onBlock: (text: string) => void;
  #tail = '';
  #live: Node[] = [];
  /** The last block while it is code: text is then added to it in place. */
  #code: (CodeBlock & { info: string }) | null = null;

  /** @param onBlock called with each block's text once the block is whole. */
  constructor(root: HTMLElement, onBlock: (text: string) => void = () => {}) {
    this.#root = root;
    this.#onBlock = onBlock;
  }

  append(text: string): void {
    // The parser counts each line end as one character.
    this.#tail += text.replaceAll('\r', '');
  }

  /** Shows the appended text. The cost is that of the last block. */
  render(): void {
    const tokens = blocksOf(this.#tail);
    const last = tokens.findLastIndex(({ type }) => type !== 'space');
    const [live] = tokens.slice(Math.max(0, last));
    if (last > 0) this.#settle(tokens.slice(0, last));
    if (live?.type === 'code') this.#showCode(live as Tokens.Code);
    else if (live !== undefined) this.#replaceLive(blockNodes([live]));
  }

  /** Ends the text: nothing more comes. */
  end(): void {
    this.render();
    for (const node of this.#live) this.#onBlock(spokenText(node));
  }

  /** Keeps whole blocks, which further text cannot change. */
  #settle(blocks: readonly Token[]): void {
    const nodes = blockNodes(blocks);
    this.#replaceLive(nodes);
    this.#live = [];
    for (const node of nodes) this.#onBlock(spokenText(node));
    this.#tail = this.#tail.slice(blocks.reduce((sum, { raw }) => sum + raw.length, 0));
  }

  #showCode({ text, lang: info = '' }: Tokens.Code): void {
    const code = this.#code;
    if (code !== null && code.info === info && text.startsWith(code.text.data)) {
      code.text.appendData(text.slice(code.text.data.length));
      return;
    }
    const made = { ...codeBlock(text, info), info };
    this.#replaceLive([made.element]);
    this.#code = made;
  }

  #replaceLive(nodes: Node[]): void {
    this.#code = null;
    for (const node of this.#live) this.#root.removeChild(node);
    this.#root.append(...nodes);
    this.#live = nodes;
  }
}

/** Text of a node for screen readers: of code without the words around it. */
function spokenText(node: Node): string {
  const code = node instanceof Element ? node.querySelector('.code-block > pre, :scope > pre') : null;
  return (code ?? node).textContent ?? '';
}
