import type { SizeCount } from '../../../feeds/models-event.js';
import { el } from '../dom.js';
import { sizeLabel, sizesSentence } from './model-words.js';

/** Bars of how many batches had how many rows, with a sentence of the same for screen readers. */
export class BatchSizes {
  readonly #bars = el('div', { class: 'sizes-bars', role: 'img' });
  readonly #caption = el('figcaption');
  readonly element = el('figure', { class: 'sizes' }, [this.#caption, this.#bars]);
  /** Sizes as they are drawn. */
  #drawn: readonly SizeCount[] = [];

  update(sizes: readonly SizeCount[]): void {
    this.element.hidden = sizes.length === 0;
    const said = sizesSentence(sizes);
    if (this.#bars.getAttribute('aria-label') === said) return;
    this.#bars.setAttribute('aria-label', said);
    if (!sameSizes(sizes, this.#drawn)) this.#build(sizes);
    this.#drawn = sizes;
    const most = Math.max(...sizes.map(([, , batches]) => batches));
    for (const [i, bar] of [...this.#bars.children].entries()) {
      const share = sizes[i]![2] / most;
      (bar.firstElementChild as HTMLElement).style.height = `${Math.max(2, Math.round(34 * share))}px`;
    }
  }

  #build(sizes: readonly SizeCount[]): void {
    const isRanges = sizes.some(([from, to]) => from !== to);
    this.#caption.textContent = isRanges ? 'Batches by rows, up to' : 'Batches by rows';
    const bars = sizes.map((size) =>
      el('span', { class: 'sizes-bar' }, [el('i'), el('span', {}, [sizeLabel(size)])]),
    );
    this.#bars.replaceChildren(...bars);
  }
}

function sameSizes(left: readonly SizeCount[], right: readonly SizeCount[]): boolean {
  return left.length === right.length && left.every(([, to], i) => to === right[i]![1]);
}
