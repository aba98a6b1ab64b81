import type { Token, Tokens } from 'marked';
import { blocksOf } from '../../../../../texts/markdown-blocks.js';
import { CodeBlock } from '../code/code-block.js';
import { Formulas } from '../math/formulas.js';
import { MATH_SYNTAX } from '../math/math-syntax.js';
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
  #code: CodeBlock | null = null;
  readonly #formulas = new Formulas();

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
    this.#render(false);
  }

  /** Ends the text: nothing more comes. */
  end(): void {
    this.#render(true);
    for (const node of this.#live) this.#onBlock(spokenText(node));
  }

  #render(isWhole: boolean): void {
    const tokens = blocksOf(this.#tail, MATH_SYNTAX);
    const last = tokens.findLastIndex(({ type }) => type !== 'space');
    const [live] = tokens.slice(Math.max(0, last));
    if (last > 0) this.#settle(tokens.slice(0, last));
    if (live?.type === 'code') this.#showCode(live as Tokens.Code, isWhole);
    else if (live !== undefined) {
      const { left } = this.#formulas;
      this.#replaceLive(blockNodes([live], { formulas: this.#formulas, isWhole }));
      // What is made again counts once.
      this.#formulas.left = left;
    }
  }

  /** Keeps whole blocks, which further text cannot change. */
  #settle(blocks: readonly Token[]): void {
    const [first] = blocks as [Tokens.Code];
    const begun = first.type === 'code' && this.#isContinued(first) ? this.#code : null;
    if (begun !== null) this.#showCode(first, true);
    const made = blockNodes(blocks.slice(begun === null ? 0 : 1), {
      formulas: this.#formulas,
      isWhole: true,
    });
    if (begun === null) this.#replaceLive(made);
    else this.#root.append(...made);
    this.#live = [];
    this.#code = null;
    for (const node of begun === null ? made : [begun.element, ...made]) this.#onBlock(spokenText(node));
    this.#tail = this.#tail.slice(blocks.reduce((sum, { raw }) => sum + raw.length, 0));
  }

  #showCode(token: Tokens.Code, isWhole: boolean): void {
    const { text, lang: info = '' } = token;
    if (this.#isContinued(token)) this.#code!.grow(text);
    else {
      const made = new CodeBlock(text, info);
      this.#replaceLive([made.element]);
      this.#code = made;
    }
    this.#code!.colour(isWhole);
  }

  /** True where the code is the one that is shown, or has grown from it. */
  #isContinued({ text, lang: info = '' }: Tokens.Code): boolean {
    return this.#code?.begins(text, info) ?? false;
  }

  #replaceLive(nodes: Node[]): void {
    this.#code = null;
    for (const node of this.#live) this.#root.removeChild(node);
    this.#root.append(...nodes);
    this.#live = nodes;
  }
}

/** Text of a node for screen readers: of code without the words around it, of formulas what was written. */
function spokenText(node: Node): string {
  const code = node instanceof Element ? node.querySelector('.code-block > pre, :scope > pre') : null;
  if (code !== null || !(node instanceof HTMLElement)) return (code ?? node).textContent ?? '';
  const read = node.cloneNode(true) as HTMLElement;
  const formulas = [read, ...read.querySelectorAll<HTMLElement>('[data-tex]')];
  for (const formula of formulas)
    if (formula.dataset.tex !== undefined) formula.textContent = formula.dataset.tex;
  return read.textContent ?? '';
}
