import { el } from '../../dom.js';
import { copyText } from '../copy-text.js';
import type { Run } from './code-runs.js';
import { highlighter } from './highlighter.js';

/** Milliseconds after which code that still grows is coloured again, and the characters up to which it is. */
const AGAIN_MS = 500;
const MAX_GROWING = 20_000;

/** Code with its language, its colours once a worker has found them, and a button that copies it. */
export class CodeBlock {
  readonly element: HTMLElement;
  readonly info: string;
  readonly #language: string;
  readonly #shown = el('code');
  /** What has come since the colours were made. */
  #tail = new Text();
  #code = '';
  #colouredMs = 0;
  #isColouring = false;

  constructor(code: string, info: string) {
    this.info = info;
    this.#language = /^[\w+#.-]{1,24}/.exec(info)?.[0] ?? '';
    this.#shown.append(this.#tail);
    const copy = el('button', { class: 'button quiet code-copy', type: 'button' }, ['Copy'], {
      click: async () => {
        copy.textContent = (await copyText(this.#code)) ? 'Copied' : 'Not copied';
        setTimeout(() => {
          copy.textContent = 'Copy';
        }, 1500);
      },
    });
    copy.setAttribute('aria-label', this.#language === '' ? 'Copy code' : `Copy ${this.#language} code`);
    this.element = el('div', { class: 'code-block' }, [
      el('div', { class: 'code-head' }, [el('span', {}, [this.#language]), copy]),
      el('pre', { tabindex: '0', role: 'group', 'aria-label': 'Code' }, [this.#shown]),
    ]);
    this.grow(code);
  }

  /** True where the code is the beginning of this one. */
  begins(code: string, info: string): boolean {
    return this.info === info && code.startsWith(this.#code);
  }

  /** Shows what the code has become, which begins as it was. */
  grow(code: string): void {
    this.#tail.appendData(code.slice(this.#code.length));
    this.#code = code;
  }

  /** Asks for the colours. @param isWhole false: the code still grows, so that it is not asked each time */
  colour(isWhole: boolean): void {
    const code = this.#code;
    const nowMs = performance.now();
    const isEarly = nowMs - this.#colouredMs < AGAIN_MS || code.length > MAX_GROWING;
    if (!isWhole && (this.#isColouring || isEarly)) return;
    this.#colouredMs = nowMs;
    this.#isColouring = true;
    void highlighter.runs(code, this.#language).then((runs) => {
      this.#isColouring = false;
      if (runs !== null) this.#show(code, runs);
    });
  }

  #show(code: string, runs: readonly Run[]): void {
    let at = 0;
    const pieces = runs.map(([length, classes]) => {
      const text = code.slice(at, at + length);
      at += length;
      return classes === '' ? new Text(text) : el('span', { class: classes }, [text]);
    });
    this.#tail = new Text(this.#code.slice(at));
    this.#shown.replaceChildren(...pieces, this.#tail);
  }
}
